//! `archivist hook NAME ARGUMENTS…`: the program of a built-in plugin, called by its hook file.

use clap::Args;
use std::ffi::OsString;
use std::process::ExitCode;

/// Run the program of a built-in plugin, see archivist-hooks(7)
#[derive(Args)]
pub struct HookArgs {
    name: String,
    /// Arguments of the hook
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

/// The program of a hook that these arguments of the process name in the way of hook files. `None` for
/// all others, which may be wrong or ask for help.
pub fn of(arguments: impl IntoIterator<Item = OsString>) -> Option<HookArgs> {
    let mut arguments = arguments.into_iter().skip(1);
    let is_hook = arguments.next()? == "hook";
    let name = arguments.next()?.into_string().ok();
    let name = name.filter(|name| is_hook && !name.starts_with('-'))?;
    Some(HookArgs { name, arguments: arguments.collect() })
}

pub fn run(args: HookArgs) -> ExitCode {
    let arguments: Vec<String> =
        args.arguments.iter().map(|argument| argument.to_string_lossy().into_owned()).collect();
    archivist_hooks::main(&args.name, &arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cli, verb::Verb};
    use clap::Parser;

    /// The short way takes the same arguments as the definition of the command line.
    #[test]
    fn hooks_are_named_as_the_command_line_defines() {
        let both = |words: &[&str]| {
            let words: Vec<OsString> = words.iter().map(OsString::from).collect();
            let parsed = match Cli::try_parse_from(&words).map(|cli| cli.verb) {
                Ok(Verb::Hook(args)) => Some((args.name, args.arguments)),
                _ => None,
            };
            let short = of(words).map(|args| (args.name, args.arguments));
            (short, parsed)
        };
        for words in [
            &["archivist", "hook", "title", "--url=http://a/", "--depth=1"][..],
            &["archivist", "hook", "sonic", "-c", "file", "--help"],
            &["archivist", "hook", "title"],
        ] {
            let (short, parsed) = both(words);
            assert!(short.is_some());
            assert_eq!(short, parsed, "{words:?}");
        }
        for words in [
            &["archivist", "hook"][..],
            &["archivist", "hook", "--help"],
            &["archivist", "list", "hook"],
            &["archivist"],
        ] {
            assert_eq!(both(words).0, None, "{words:?}");
        }
    }
}
