//! The programs behind the built-in plugins, started by their hook files as `archivist hook NAME`.
//!
//! Each program takes an [`Invocation`] and returns a [`Finding`]; [`main`] prints it as the one
//! ArchiveResult record of the run. Hooks follow the contract of archivist-hooks(7): the working
//! directory is the plugin's own output directory, standard output carries records, standard
//! error is the log.

mod chromium;
pub mod crawl;
pub mod page;
pub mod process;
mod programs;

use crawl::{housekeeping, sonic};
use process::invocation::Invocation;
use process::record::Finding;
use process::{reach, record};
use programs::{dom, favicon, hashes, headers, outlinks, pdf, screenshot, title, wget};
use std::process::ExitCode;

/// How a program ends early: with a finding too, so that there is always a record.
type Outcome = Result<Finding, Finding>;

/// A built-in program: its name, its plugin, the plugin's `config.json`, and what it does.
struct Builtin {
    name: &'static str,
    plugin: &'static str,
    schema: &'static str,
    run: fn(&Invocation) -> Outcome,
}

macro_rules! builtin {
    ($name:ident) => {
        builtin!(stringify!($name), $name, $name::run)
    };
    ($name:expr, $plugin:ident, $run:expr) => {
        Builtin {
            name: $name,
            plugin: stringify!($plugin),
            schema: include_str!(concat!(
                "../../plugins/",
                stringify!($plugin),
                "/config.json"
            )),
            run: $run,
        }
    };
}

const BUILTINS: [Builtin; 14] = [
    builtin!("chromium_launch", chromium, chromium::launch::run),
    builtin!("chromium_tab", chromium, chromium::tab::run),
    builtin!(wget),
    builtin!(favicon),
    builtin!(headers),
    builtin!(screenshot),
    builtin!(pdf),
    builtin!(dom),
    builtin!(title),
    builtin!(outlinks),
    builtin!(hashes),
    builtin!(housekeeping),
    builtin!("housekeeping_persona", housekeeping, housekeeping::persona),
    builtin!("housekeeping_tidy", housekeeping, housekeeping::tidy),
];

/// Runs the built-in program `name` with a hook's arguments and prints its record.
///
/// The exit status is 0 when it is done (with or without results), 10 when the configuration or
/// a missing program skips it, 1 when it failed.
pub fn main(name: &str, args: &[String]) -> ExitCode {
    if name == "sonic" {
        // No plugin of ours: hooks of one ask for it.
        let invocation = Invocation::read("sonic", "{}", args, std::env::vars_os());
        return conclude(&sonic::main(args, &invocation), &invocation);
    }
    if name == "reach" {
        return reach::test();
    }
    let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
        let known: Vec<_> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        eprintln!("no built-in hook '{name}'; there are {}", known.join(", "));
        return ExitCode::from(2);
    };
    let invocation = Invocation::read(builtin.plugin, builtin.schema, args, std::env::vars_os());
    let finding = perform(builtin, &invocation).unwrap_or_else(|early| early);
    let finding = reach::explained(finding, invocation.web_url().ok().as_ref());
    conclude(&finding, &invocation)
}

fn conclude(finding: &Finding, invocation: &Invocation) -> ExitCode {
    // For the journal, where systemd before 254 puts nothing else under the fields of a quiet hook.
    eprintln!(
        "{}: {}",
        finding.status.word(),
        finding.output_str.escape_debug()
    );
    record::print(finding, &invocation.context);
    ExitCode::from(finding.exit_code())
}

fn perform(builtin: &Builtin, invocation: &Invocation) -> Outcome {
    let switch = format!("{}_ENABLED", invocation.prefix());
    if !invocation.settings.flag(&switch) {
        return Err(Finding::skipped(format!("{switch} is off")));
    }
    (builtin.run)(invocation)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_plugin_has_a_switch_and_a_time_limit() {
        for builtin in &BUILTINS {
            let invocation = Invocation::read(builtin.plugin, builtin.schema, &[], []);
            let prefix = invocation.prefix();
            assert!(invocation.settings.flag(&format!("{prefix}_ENABLED")));
            assert!(invocation.settings.number(&format!("{prefix}_TIMEOUT")) > 0);
        }
    }

    #[test]
    fn a_switched_off_plugin_is_skipped_under_any_of_its_names() {
        for name in ["TITLE_ENABLED", "SAVE_TITLE", "USE_TITLE"] {
            let env = [(name.into(), "false".into())];
            let builtin = BUILTINS.iter().find(|b| b.name == "title").unwrap();
            let invocation = Invocation::read("title", builtin.schema, &[], env);
            assert_eq!(
                perform(builtin, &invocation).unwrap_err().exit_code(),
                10,
                "{name}"
            );
        }
    }
}
