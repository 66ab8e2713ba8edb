//! The programs that enabled plugins lack, for `archivist plugins install --missing`.

use crate::client::exit::Failure;
use crate::display::style::Style;
use crate::display::table::Table;
use archivist_core::text::{clean, did_you_mean, similar};
use archivist_shared::bus::documents::report::{Binary, Plugins};
use std::collections::BTreeSet;

/// Returns the programs that are missing or too old and that a plugin needs which runs, or would
/// run with them.
pub fn lacking<'a>(binaries: &'a [Binary], plugins: &Plugins) -> Vec<&'a Binary> {
    let is_enabled = |name: &String| {
        let mut plugins = plugins.plugins.iter();
        plugins.any(|plugin| plugin.name == *name && !plugin.by_choice)
    };
    let is_lacking =
        |binary: &&Binary| is_unusable(binary) && binary.plugins.iter().any(is_enabled);
    binaries.iter().filter(is_lacking).collect()
}

fn is_unusable(binary: &Binary) -> bool {
    binary.abspath.is_none() || binary.least.is_some()
}

/// Returns the programs among these, and those of the plugins of these names, that are missing or
/// too old.
///
/// # Errors
/// If a name is neither that of a plugin nor that of a program.
pub fn lacking_of<'a>(
    binaries: &'a [Binary],
    plugins: &Plugins,
    names: &[String],
) -> Result<Vec<&'a Binary>, Failure> {
    // Plugins and programs may have the same name.
    let known: BTreeSet<&str> = plugins
        .plugins
        .iter()
        .map(|plugin| plugin.name.as_str())
        .chain(binaries.iter().map(|binary| binary.name.as_str()))
        .collect();
    for name in names {
        if !known.iter().any(|known| known.eq_ignore_ascii_case(name)) {
            return Err(Failure::usage(format!(
                "no plugin or program is named '{}'{}",
                clean(name),
                did_you_mean(&similar(name, known.iter().copied()))
            )));
        }
    }
    let is_meant = |binary: &&Binary| {
        let mut meant = binary.plugins.iter().chain([&binary.name]);
        meant.any(|known| names.iter().any(|name| name.eq_ignore_ascii_case(known)))
    };
    let lacking = binaries.iter().filter(|binary| is_unusable(binary));
    Ok(lacking.filter(is_meant).collect())
}

/// Returns the names of those that provider plugins can install.
pub fn installable(lacking: &[&Binary]) -> Vec<String> {
    let by_providers = lacking.iter().filter(|binary| {
        let how = binary.missing.as_deref();
        how.is_some_and(|how| how.starts_with("archivist plugins install "))
    });
    by_providers.map(|binary| binary.name.clone()).collect()
}

/// Returns a row for each program: how to get it, and which plugins need it.
pub fn listed(lacking: &[&Binary], style: &Style) -> String {
    let mut table = Table::new("PROGRAM  BY…  NEEDED BY…");
    let by_providers = installable(lacking);
    for binary in lacking {
        let how = match binary.missing.as_deref() {
            _ if by_providers.contains(&binary.name) => "a provider plugin, now",
            Some(how) => how,
            None => "hand",
        };
        table.row([binary.name.as_str().into(), how.into(), binary.plugins.join(" ").into()]);
    }
    table.render(style)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;
    use archivist_shared::bus::documents::report::Plugin;

    fn plugin(name: &str, by_choice: bool) -> Plugin {
        Plugin {
            name: name.into(),
            directory: String::new(),
            description: String::new(),
            hooks: Vec::new(),
            skipped: Some("a reason".into()),
            by_choice,
            fix: None,
            uses: Default::default(),
        }
    }

    #[test]
    fn only_what_enabled_plugins_lack_is_listed() {
        let binary = |name: &str, path: Option<&str>, plugin: &str, how: &str| Binary {
            name: name.into(),
            abspath: path.map(str::to_owned),
            missing: path.is_none().then(|| how.to_owned()),
            plugins: vec![plugin.into()],
            ..Binary::default()
        };
        let mut binaries = [
            binary("git", None, "git", "apt install git"),
            binary("lit", None, "media", "archivist plugins install media"),
            binary("node", Some("/bin/node"), "media", ""),
            binary("off", None, "disabled", "archivist plugins install disabled"),
            binary("wget", Some("/bin/wget"), "media", ""),
        ];
        let plugins = Plugins {
            plugins: vec![plugin("git", false), plugin("media", false), plugin("disabled", true)],
            problems: Vec::new(),
        };
        let names = |binaries: &[Binary]| -> Vec<String> {
            let lacking = lacking(binaries, &plugins);
            lacking.iter().map(|binary| binary.name.clone()).collect()
        };
        assert_eq!(names(&binaries), ["git", "lit"]);
        binaries[2].least = Some("22".into());
        assert_eq!(names(&binaries), ["git", "lit", "node"], "too old");
        let lacking = lacking(&binaries, &plugins);
        assert_eq!(installable(&lacking), ["lit"]);
        let of = |name: &str| lacking_of(&binaries, &plugins, &[name.to_owned()]);
        assert_eq!(installable(&of("OFF").unwrap()), ["off"], "a program");
        assert_eq!(installable(&of("disabled").unwrap()), ["off"], "a plugin");
        assert_eq!(
            of("gitx").unwrap_err().message(),
            "no plugin or program is named 'gitx'; did you mean git or lit?"
        );
        assert_eq!(
            listed(&lacking[..2], &Style::plain(Time(0))),
            "PROGRAM  BY                      NEEDED BY\n\
             git      apt install git         git\n\
             lit      a provider plugin, now  media\n"
        );
    }
}
