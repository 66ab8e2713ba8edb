//! Commands in messages, for the orchestrator that the message is about.

use archivist_config::Scope;
use std::path::Path;
use std::sync::OnceLock;

/// Name of the command, as messages print it before a verb.
const COMMAND: &str = "archivist ";

/// Scope of this process.
static SCOPE: OnceLock<Scope> = OnceLock::new();

/// The definition of the command line, whose verbs are above all that prints their names.
static COMMAND_LINE: OnceLock<fn() -> clap::Command> = OnceLock::new();

/// Sets the verbs for [`in_scope`], which changes no text without them.
pub fn know(line: fn() -> clap::Command) {
    let _ = COMMAND_LINE.set(line);
}

/// Sets the scope for [`here`].
pub fn remember(scope: &Scope) {
    let _ = SCOPE.set(scope.clone());
}

/// Returns the text with commands for the orchestrator of this process.
pub fn here(text: &str) -> String {
    SCOPE.get().map_or_else(|| text.to_owned(), |scope| in_scope(text, scope))
}

/// Returns the text with `--user` and `--instance` of the scope in each command.
pub fn in_scope(text: &str, scope: &Scope) -> String {
    let Some(line) = COMMAND_LINE.get().map(|line| line()) else {
        return text.to_owned();
    };
    let is_verb = |word: &str| line.find_subcommand(word).is_some();
    let options = scope.options();
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(COMMAND) {
        let (before, after) = rest.split_at(at + COMMAND.len());
        let is_word = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || "-_/.".contains(c));
        let end = after.find(|c: char| !c.is_ascii_lowercase());
        out.push_str(before);
        if is_word && is_verb(&after[..end.unwrap_or(after.len())]) {
            out.push_str(&options);
        }
        rest = after;
    }
    out + rest
}

/// Returns a path as one word of a shell.
pub fn shell_word(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = text.chars().all(|c| c.is_ascii_alphanumeric() || "/._-@:".contains(c));
    if is_plain { text.into_owned() } else { format!("'{}'", text.replace('\'', "'\\''")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_keep_the_scope() {
        know(crate::command);
        let scope = |user, instance: Option<&str>| Scope {
            user,
            instance: instance.map(str::to_owned),
            ..Scope::system("/")
        };
        let text = "archivist stops; see 'archivist why c1'; archivist retry --failed";
        assert_eq!(in_scope(text, &scope(false, None)), text);
        assert_eq!(
            in_scope(text, &scope(true, None)),
            "archivist stops; see 'archivist --user why c1'; archivist --user retry --failed"
        );
        assert_eq!(
            in_scope("archivist retry", &scope(true, Some("b"))),
            "archivist --user --instance b retry"
        );
        let other = "/usr/bin/archivist why, archivist --user why";
        assert_eq!(in_scope(other, &scope(true, None)), other);
    }
}
