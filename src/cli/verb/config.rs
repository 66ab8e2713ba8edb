//! `archivist config`: the configuration in effect and the origin of each value. What the
//! orchestrator only warns about is an error here. `--set` changes it.

mod set;

use crate::client::exit::{Exit, Failure};
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use crate::machine::plugins::catalogue;
use archivist_config::inputs::Inputs;
use archivist_config::{Scope, Settings, fragments, inputs, keys};
use archivist_core::model::HIDDEN;
use archivist_core::text::is_value_name;
use archivist_core::text::{Problem, clean, clean_lines};
use archivist_plugin::Catalogue;
use clap::Args;
use serde::Serialize;

/// Show the configuration in effect and where each value comes from
///
/// A value comes from a line of a file, or is built in. Unknown sections and keys are errors here;
/// the orchestrator only warns about them.
#[derive(Args)]
pub struct ConfigArgs {
    /// Show only this setting, such as WorkersMax or WGET_TIMEOUT
    #[arg(value_name = "KEY", conflicts_with_all = ["get", "set"])]
    key: Option<String>,
    /// Print only the value of this setting, also if it is a secret
    ///
    /// For a setting of a plugin that the configuration does not have, this is the default of the
    /// plugin, or an empty line.
    #[arg(long, value_name = "KEY", conflicts_with_all = ["set", "json"])]
    get: Option<String>,
    /// Write this setting into a drop-in, after validation; may be given more than once
    ///
    /// The setting is one of archivist.conf(5), or of a plugin. The drop-in is
    /// /etc/archivist/archivist.conf.d/60-set.conf, or with --user in ~/.config/archivist, and the command
    /// that applies it is printed. The value replaces the one of an earlier --set; an empty value restores the built-in one. The
    /// value must be of the type that the plugin declares. The whole configuration is validated
    /// with the setting first; if the value is invalid, nothing is written.
    ///
    /// Secrets, which are settings whose name contains a word such as KEY or TOKEN, or which their
    /// plugin declares as such, are written to 60-set-secrets.conf, which only root can read. They
    /// are not shown without --get.
    #[arg(long, value_name = "KEY=VALUE", value_parser = set::assignment, conflicts_with = "json")]
    set: Vec<(String, String)>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Effective {
    section: &'static str,
    key: String,
    value: String,
    /// `FILE:LINE`, or null for the built-in value.
    from: Option<String>,
}

/// Returns the setting of this name among those in effect.
fn only<'a>(effective: &'a [Effective], key: &str) -> Result<&'a Effective, Failure> {
    let found = effective.iter().find(|one| one.key == key);
    found.ok_or_else(|| {
        if is_value_name(key) {
            Failure::failed(format!("no plugin has a setting '{key}'"))
        } else {
            Failure::usage(keys::explain_unknown("Orchestrator", key))
        }
    })
}

pub fn run(args: ConfigArgs, scope: &Scope) -> Result<Exit, Failure> {
    if !args.set.is_empty() {
        return set::run(&args.set, scope);
    }
    let inputs = inputs::collect(&fragments::read(scope)?);
    let settings = Settings::from_inputs(&inputs, &Settings::built_in())?;
    let mut effective = effective(&settings, &inputs);
    let catalogue = catalogue(scope, &settings);
    if let Some(key) = args.get.as_ref().or(args.key.as_ref()) {
        let is_set = effective.iter().any(|one| one.key == *key);
        if let Some(path) = fragments::private(scope).first()
            && !is_set
        {
            return Err(Failure::failed(format!(
                "only root can read '{}', which may set {key}",
                path.display()
            )));
        }
        effective.extend(default_of(&catalogue, key, &effective));
        only(&effective, key)?;
        effective.retain(|one| one.key == *key);
    }
    if let (Some(_), Some(one)) = (&args.get, effective.first()) {
        style::print(&format!("{}\n", clean_lines(&one.value)))?;
        return Ok(Exit::Done);
    }
    for one in &mut effective {
        if catalogue.is_secret(&one.key) && !one.value.is_empty() {
            one.value = HIDDEN.to_owned();
        }
    }
    if args.json {
        style::print_value(&effective)?;
    } else {
        let style = Style::of_stdout();
        style::print(&table(&effective).render(&style))?;
        for path in fragments::private(scope) {
            let path = clean(&path.to_string_lossy());
            style::print(&format!("not shown: {path}, which only root can read\n"))?;
        }
    }
    if inputs.warnings.is_empty() {
        Ok(Exit::Done)
    } else {
        let lines: Vec<_> = inputs.warnings.iter().map(Problem::text).collect();
        Err(Failure::failed(lines.join("\n")))
    }
}

/// The default of a setting of a plugin that the configuration does not set, as hooks get it; empty
/// if there is none.
fn default_of(catalogue: &Catalogue, key: &str, effective: &[Effective]) -> Option<Effective> {
    if effective.iter().any(|one| one.key == key) || !catalogue.known_keys().contains(key) {
        return None;
    }
    Some(Effective {
        section: keys::VALUES,
        key: key.to_owned(),
        value: catalogue.default_text(key),
        from: None,
    })
}

fn effective(settings: &Settings, inputs: &Inputs) -> Vec<Effective> {
    let from = |section, key: &str| inputs.location_of(section, key).map(ToString::to_string);
    let own = keys::KEYS.iter().map(|key| Effective {
        section: key.section,
        key: key.name.to_owned(),
        value: (key.show)(settings),
        from: from(key.section, key.name),
    });
    let values = settings.values.iter().map(|(key, value)| Effective {
        section: keys::VALUES,
        key: key.clone(),
        value: value.clone(),
        from: from(keys::VALUES, key),
    });
    own.chain(values).collect()
}

fn table(effective: &[Effective]) -> Table {
    let mut table = Table::new("SECTION  SETTING…  FROM");
    for one in effective {
        let tone = match one.from {
            Some(_) => Tone::Plain,
            None => Tone::Dim,
        };
        for line in one.value.split('\n') {
            table.row([
                format!("[{}]", one.section).into(),
                Cell::toned(format!("{}={line}", one.key), tone),
                Cell::toned(one.from.as_deref().unwrap_or("built in"), tone),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_config::fragments::Fragment;
    use archivist_core::model::Time;

    #[test]
    fn every_value_has_its_origin() {
        let inputs = inputs::collect(&[Fragment {
            path: "/etc/archivist/archivist.conf".into(),
            text: "[Orchestrator]\nWorkersMax=20\n[Archive]\nUrlDenyList=a.example,b.example\n[Config]\nWGET_TIMEOUT=30\n".into(),
        }]);
        let settings = Settings::from_inputs(&inputs, &Settings::default()).unwrap();
        let text = table(&effective(&settings, &inputs)).render(&Style::plain(Time(0)));
        for line in [
            "[Orchestrator]  WorkersPerKind=4       built in",
            "[Orchestrator]  WorkersMax=20          /etc/archivist/archivist.conf:2",
            "[Archive]       UrlDenyList=a.example  /etc/archivist/archivist.conf:4",
            "[Archive]       UrlDenyList=b.example  /etc/archivist/archivist.conf:4",
            "[Hooks]         DaemonMaxSec=12h       built in",
            "[Config]        WGET_TIMEOUT=30        /etc/archivist/archivist.conf:6",
        ] {
            assert!(text.lines().any(|l| l == line), "{line}\n{text}");
        }
    }
}
