//! Verbs that other programs have, with what does the same here: ArchiveBox, abx-dl, systemctl and pueue; and
//! words of a search that look like options.

use clap::Error;
use clap::builder::StyledStr;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Verbs, and the hint about all of them. `{}` is the verb.
const HINTS: [(&[&str], &str); 11] = [
    (
        &["start", "stop", "restart", "reload", "enable", "disable"],
        "the orchestrator is a unit: systemctl {} archivist-orchestrator.service",
    ),
    (&["init", "setup"], "the package has set up everything, see: archivist doctor"),
    (&["schedule"], "a watch archives a site again and again: archivist watch add --help"),
    (&["dl", "download", "oneshot"], "to archive in the foreground: archivist run URL"),
    (&["archive", "save", "snapshot", "crawl"], "to archive pages: archivist add URL"),
    (&["remove", "rm", "purge", "clean"], "to delete pages with their files: archivist delete ID"),
    (&["extract"], "to run a hook again: archivist retry ID --hook HOOK"),
    (&["ls", "queue"], "to list crawls and pages: archivist list"),
    (&["ps", "top", "info"], "to see what is running: archivist status"),
    (&["log", "follow"], "to see the journal of a page or hook: archivist logs ID"),
    (
        &["server", "serve", "webui", "manage"],
        "there is no web server: a browser can open index.html in the directory of the archive, see: archivist open",
    ),
];

/// The hint about an unknown option of `search`: a word with a hyphen in front leaves pages out.
const SEARCH_HINT: &str = "a word that pages must not have stands in quotes with the others: archivist search 'word -without'";

/// Adds a hint to an error: about an unknown verb what does the same here, in place of verbs with similar
/// names; about an unknown option of `search` how a word with a hyphen is written.
pub fn with_hint(mut error: Error) -> Error {
    let hint = match (error.get(ContextKind::InvalidSubcommand), error.kind()) {
        (Some(ContextValue::String(verb)), _) => hint_of(verb),
        (_, ErrorKind::UnknownArgument) if is_of(&error, "archivist search") => {
            Some(SEARCH_HINT.to_owned())
        }
        _ => None,
    };
    if let Some(hint) = hint {
        error.remove(ContextKind::SuggestedSubcommand);
        let hint = ContextValue::StyledStrs(vec![StyledStr::from(hint)]);
        error.insert(ContextKind::Suggested, hint);
    }
    error
}

/// Whether the usage that an error shows is that of this command.
fn is_of(error: &Error, command: &str) -> bool {
    let usage = error.get(ContextKind::Usage);
    usage.is_some_and(|usage| usage.to_string().contains(command))
}

fn hint_of(verb: &str) -> Option<String> {
    let mut hints = HINTS.iter();
    let (_, hint) = hints.find(|(verbs, _)| verbs.contains(&verb))?;
    Some(hint.replace("{}", verb))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(words: &str) -> String {
        let words = format!("archivist {words}");
        let parsed = crate::command().try_get_matches_from(words.split(' '));
        with_hint(parsed.unwrap_err()).to_string()
    }

    #[test]
    fn words_with_a_hyphen_are_written_in_quotes() {
        let unknown = error_of("search ham -kevin");
        assert!(unknown.contains("archivist search 'word -without'"), "{unknown}");
        assert!(!unknown.contains("-- -k"), "{unknown}");
        assert!(!error_of("list crawls -k").contains("search"));
    }

    #[test]
    fn verbs_of_other_programs_lead_to_ours() {
        let reload = error_of("reload");
        assert!(
            reload.contains(
                "tip: the orchestrator is a unit: systemctl reload archivist-orchestrator.service"
            ),
            "{reload}"
        );
        assert!(!reload.contains("recorded"), "{reload}");
        assert!(error_of("dl").contains("archivist run URL"));
        let typo = error_of("lst");
        assert!(typo.contains("'list'") && !typo.contains("archivist status"), "{typo}");
    }

    #[test]
    fn no_verb_of_ours_has_a_hint() {
        let command = crate::command();
        for (verbs, hint) in HINTS {
            for verb in verbs {
                assert!(command.find_subcommand(verb).is_none(), "{verb}");
            }
            // What a hint names exists.
            let named = hint.split_once(": archivist ").map(|(_, words)| words);
            if let Some(named) = named.and_then(|words| words.split(' ').next()) {
                assert!(command.find_subcommand(named).is_some(), "{hint}");
            }
        }
    }
}
