//! ProcessTitle=: argv[0] of workers, which process lists show.

/// Prefixes of a command line (systemd.service(5), COMMAND LINES).
const PREFIXES: &[char] = &['@', '-', ':', '+', '!', '|'];

/// Returns the command line with NAME[INDEX] as argv[0].
///
/// # Errors
/// If the command line sets argv[0] itself, or if a quote is open.
pub fn titled(exec: &str, pool: &str) -> Result<String, String> {
    let program = exec.trim_start_matches(PREFIXES);
    let prefixes = &exec[..exec.len() - program.len()];
    if prefixes.contains('@') {
        return Err("Exec= sets argv[0] itself by '@'; omit that, or ProcessTitle=yes".to_owned());
    }
    let quote = program.chars().next().filter(|c| ['"', '\''].contains(c));
    let word_end = match quote {
        Some(quote) => program[1..].find(quote).map(|end| end + 2),
        None => Some(program.find(char::is_whitespace).unwrap_or(program.len())),
    };
    let end = word_end.ok_or_else(|| "Exec= has an open quote".to_owned())?;
    let (program, arguments) = program.split_at(end);
    Ok(format!("{prefixes}@{program} {pool}[%i]{arguments}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_program_stays_and_its_arguments_follow_the_title() {
        for (exec, want) in [
            ("/bin/a", "@/bin/a web[%i]"),
            ("-/bin/a --n %i", "-@/bin/a web[%i] --n %i"),
            ("\"/opt/a b\" c", "@\"/opt/a b\" web[%i] c"),
        ] {
            assert_eq!(titled(exec, "web").as_deref(), Ok(want));
        }
        assert!(titled("@/bin/a b", "web").is_err());
        assert!(titled("\"/bin/a", "web").is_err());
    }
}
