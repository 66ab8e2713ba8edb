//! What the definition of the command line says about a verb, as roff.

use super::roff::{Words, bold, italic, joined, paragraphs, with_facts};
use clap::{Arg, ArgAction, Command};

/// More options are one `[OPTION...]` in the line of a verb.
const LISTED_OPTIONS: usize = 3;

/// Returns the line that shows how a verb is called.
pub fn synopsis(name: &str, verb: &Command) -> String {
    let mut parts = vec![bold(name)];
    let options: Vec<_> = options(verb).filter(|option| !option.is_hide_set()).collect();
    if options.len() > LISTED_OPTIONS {
        parts.push(format!("[{}...]", italic("OPTION")));
    } else {
        parts.extend(options.into_iter().map(|option| {
            let more = if is_repeated(option) { "..." } else { "" };
            if option.is_required_set() {
                format!("{}{more}", call(option))
            } else {
                format!("[{}]{more}", call(option))
            }
        }));
    }
    if verb.has_subcommands() {
        let name = italic("VERB");
        parts.push(if verb.is_subcommand_required_set() { name } else { format!("[{name}]") });
    }
    parts.extend(verb.get_positionals().map(positional));
    parts.join(" ")
}

/// Returns an entry for each argument and option of a verb.
pub fn entries(verb: &Command, words: &Words) -> String {
    let positionals = verb
        .get_positionals()
        .filter(|argument| argument.get_help().is_some())
        .map(|argument| entry(verb, &value_of(argument, ""), argument, words));
    let options = options(verb).map(|option| entry(verb, &tag(option), option, words));
    positionals.chain(options).collect()
}

/// Returns what `--help` says about a verb, with `separator` before each further paragraph.
pub fn about(verb: &Command, words: &Words, separator: &str) -> String {
    let text = verb.get_long_about().or(verb.get_about());
    let text = text.map(ToString::to_string).unwrap_or_default();
    joined(&paragraphs(&text), words, separator)
}

/// Returns the names of values of a verb and its options.
pub fn values(verb: &Command) -> impl Iterator<Item = String> {
    let arguments = verb.get_arguments().filter(|argument| takes_value(argument));
    let names = arguments.flat_map(Arg::get_value_names);
    names.flatten().flat_map(|name| {
        // KEY=VALUE and its parts, but not the A of A,B, which is a word.
        let parts = name.split(['=', '|']).filter(|part| !part.contains(','));
        let parts = parts.filter(|part| part.bytes().any(|b| b.is_ascii_uppercase()));
        parts.chain([name.as_str()]).map(str::to_owned).collect::<Vec<_>>()
    })
}

/// The options of a verb. Those that every verb has are described once.
fn options(verb: &Command) -> impl Iterator<Item = &Arg> {
    let help = |option: &Arg| {
        use ArgAction::{Help, HelpLong, HelpShort, Version};
        matches!(option.get_action(), Help | HelpLong | HelpShort | Version)
    };
    let options = verb.get_arguments().filter(|argument| !argument.is_positional());
    options.filter(move |option| !help(option))
}

fn entry(verb: &Command, tag: &str, argument: &Arg, words: &Words) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let texts = paragraphs(&help.map(ToString::to_string).unwrap_or_default());
    let texts =
        with_facts(texts, [conflicts(verb, argument), default(argument)].into_iter().flatten());
    format!(".TP\n{tag}\n{}", joined(&texts, words, ".IP\n"))
}

/// A sentence about the default.
fn default(argument: &Arg) -> Option<String> {
    let default = argument.get_default_values();
    if default.is_empty() || argument.is_hide_default_value_set() || !takes_value(argument) {
        return None;
    }
    let default: Vec<_> = default.iter().map(|value| value.to_string_lossy()).collect();
    Some(format!("Defaults to {}.", default.join(", ")))
}

/// A sentence about what cannot be given as well.
fn conflicts(verb: &Command, argument: &Arg) -> Option<String> {
    let names = verb.get_arg_conflicts_with(argument).into_iter().map(|other| {
        let value = || value_name(other);
        other.get_long().map_or_else(value, |long| format!("--{long}"))
    });
    let names: Vec<_> = names.collect();
    let (last, others) = names.split_last()?;
    Some(match others {
        [] => format!("Not with {last}."),
        _ => format!("Not with {} or {last}.", others.join(", ")),
    })
}

fn takes_value(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Set | ArgAction::Append)
}

fn is_repeated(argument: &Arg) -> bool {
    matches!(argument.get_action(), ArgAction::Append)
}

/// The names of an option as the head of its entry.
fn tag(option: &Arg) -> String {
    let short = option.get_short().map(|short| format!("-{short}"));
    let long = option.get_long().map(|long| format!("--{long}"));
    let names = [short, long].into_iter().flatten();
    let names: Vec<_> =
        names.map(|name| format!("{}{}", bold(&name), with_value(option))).collect();
    names.join(", ")
}

/// An option in the line of its verb: by its long name.
fn call(option: &Arg) -> String {
    match option.get_long() {
        Some(long) => format!("{}{}", bold(&format!("--{long}")), with_value(option)),
        None => tag(option),
    }
}

fn with_value(option: &Arg) -> String {
    if !takes_value(option) {
        return String::new();
    }
    let is_optional = option.get_num_args().is_some_and(|range| range.min_values() == 0);
    let more = match option.get_value_delimiter() {
        Some(delimiter) if !value_name(option).contains(delimiter) => ",...",
        _ => "",
    };
    let value = value_of(option, more);
    match (is_optional, option.is_require_equals_set()) {
        (true, _) => format!("[={value}]"),
        (false, true) => format!("={value}"),
        (false, false) => format!(" {value}"),
    }
}

fn positional(argument: &Arg) -> String {
    let last = if argument.is_last_set() { format!("{} ", bold("--")) } else { String::new() };
    let more = if is_repeated(argument) { "..." } else { "" };
    let value = value_of(argument, more);
    if argument.is_required_set() { format!("{last}{value}") } else { format!("[{last}{value}]") }
}

/// The name of a value, or the values if they are few.
fn value_of(argument: &Arg, more: &str) -> String {
    let possible: Vec<_> = argument.get_possible_values();
    if !possible.is_empty() {
        let names: Vec<_> = possible.iter().map(|value| bold(value.get_name())).collect();
        return names.join("|");
    }
    format!("{}{more}", italic(&value_name(argument)))
}

fn value_name(argument: &Arg) -> String {
    match argument.get_value_names().unwrap_or_default() {
        [] => argument.get_id().as_str().to_uppercase(),
        names => names.join(" "),
    }
}
