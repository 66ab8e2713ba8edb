//! The programs behind the built-in plugins. Their hook files execute `archivist hook NAME`.
//!
//! Each program takes an [`Invocation`] and returns a [`Finding`], which [`main`] prints as the
//! ArchiveResult record of the run. Programs follow the contract of archivist-hooks(7): the working
//! directory is the plugin's output directory, standard output carries records, and standard error
//! is the log. They may start other programs (chromium, wget, curl).

pub mod bodies;
mod causes;
mod certificates;
mod chromium;
pub mod crawl;
pub mod page;
pub mod persona;
pub mod picture;
pub mod process;
mod programs;
pub mod replay;
pub mod source;
pub mod standalone;
pub mod trial;
mod visit;

pub use certificates::authorities;
pub use chromium::consent::{RULES_SETTING as CONSENT_RULES, is_release as has_consent_rules};
pub use programs::text::{
    Description as TextDescription, READERS as DOCUMENT_READERS, Reader as DocumentReader,
    TEXT_MAX_BYTES, TextFiles,
};
pub use visit::recording::Description as RecordingDescription;

use causes::explained;
use crawl::{housekeeping, sonic, sonic_index};
use process::finding::{Finding, Outcome};
use process::invocation::Invocation;
use process::{finding, reach};
use programs::{
    dom, favicon, hashes, headers, import, outlinks, pdf, screenshot, text, title, verify, wacz,
    wget,
};
use std::process::ExitCode;

/// A built-in program: its name, its plugin, the plugin's `config.json`, and its function.
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
            schema: include_str!(concat!("../../plugins/", stringify!($plugin), "/config.json")),
            run: $run,
        }
    };
}

const BUILTINS: [Builtin; 19] = [
    builtin!("chromium_launch", chromium, chromium::browser::launch::run),
    builtin!("chromium_tab", chromium, chromium::tab::run),
    builtin!(wget),
    builtin!(favicon),
    builtin!(headers),
    builtin!(screenshot),
    builtin!(pdf),
    builtin!(dom),
    builtin!(title),
    builtin!(outlinks),
    builtin!(wacz),
    builtin!(verify),
    builtin!(import),
    builtin!(text),
    builtin!("standalone", standalone, programs::standalone::run),
    builtin!(hashes),
    builtin!(housekeeping),
    builtin!("housekeeping_persona", housekeeping, housekeeping::persona),
    builtin!("housekeeping_tidy", housekeeping, housekeeping::tidy),
];

/// Runs the built-in program `name` with a hook's arguments and prints its record.
///
/// The exit status is 0 if the program succeeded (with or without results),
/// [`EXIT_SKIPPED`](process::finding::EXIT_SKIPPED) if the configuration, a missing program or a
/// page that is not there skips it, 1 if it failed, and 2 if there is no program of this name.
pub fn main(name: &str, args: &[String]) -> ExitCode {
    if name == "sonic" {
        // This program belongs to no built-in plugin: hooks of other plugins request it.
        let invocation = Invocation::read("sonic", "{}", args, std::env::vars_os());
        return conclude(&sonic::main(args, &invocation), &invocation);
    }
    if name == "sonic-server" {
        return sonic_index::serve();
    }
    if name == "reach" {
        return reach::test();
    }
    if name == "trial" {
        return trial::main();
    }
    let Some(builtin) = BUILTINS.iter().find(|builtin| builtin.name == name) else {
        let known: Vec<_> = BUILTINS.iter().map(|builtin| builtin.name).collect();
        eprintln!("unknown built-in hook '{name}'; known hooks: {}", known.join(", "));
        return ExitCode::from(2);
    };
    let invocation = Invocation::read(builtin.plugin, builtin.schema, args, std::env::vars_os());
    let finding = perform(builtin, &invocation).unwrap_or_else(|early| early);
    conclude(&explained(finding, &invocation), &invocation)
}

fn conclude(finding: &Finding, invocation: &Invocation) -> ExitCode {
    // For the journal: with a hook that logs nothing, systemd before 254 stores no entry that has
    // the unit's extra fields.
    eprintln!("{}: {}", finding.status.word(), finding.output_str.escape_debug());
    finding::print(finding, &invocation.context);
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
    use crate::process::finding::EXIT_SKIPPED;

    #[test]
    fn every_plugin_has_a_switch_and_a_time_limit() {
        for builtin in &BUILTINS {
            let invocation = Invocation::read(builtin.plugin, builtin.schema, &[], []);
            let prefix = invocation.prefix();
            let is_on = invocation.settings.flag(&format!("{prefix}_ENABLED"));
            // Pages are replayed when nothing else is to do (VerifyReplay= of the orchestrator).
            assert_eq!(is_on, builtin.name != "verify");
            assert!(invocation.settings.number(&format!("{prefix}_TIMEOUT")) > 0);
        }
    }

    #[test]
    fn disabled_plugin_is_skipped_under_each_alias_of_its_switch() {
        for name in ["TITLE_ENABLED", "SAVE_TITLE", "USE_TITLE"] {
            let env = [(name.into(), "false".into())];
            let builtin = BUILTINS.iter().find(|b| b.name == "title").unwrap();
            let invocation = Invocation::read("title", builtin.schema, &[], env);
            assert_eq!(
                perform(builtin, &invocation).unwrap_err().exit_code(),
                EXIT_SKIPPED,
                "{name}"
            );
        }
    }
}
