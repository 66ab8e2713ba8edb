//! The version of systemd. A generator gets it from no variable (systemd.generator(7)), and the
//! manager that waits for its generators answers no call on the bus.

use std::process::{Command, Stdio};

/// Program of systemd that prints the version (systemctl(1), `--version`), without asking the manager.
const SYSTEMCTL: &str = "/usr/bin/systemctl";

/// Returns the version of the installed systemd; 0 if `systemctl --version` does not say it.
pub fn installed() -> u32 {
    let mut asked = Command::new(SYSTEMCTL);
    asked.arg("--version").env_clear();
    asked.stdin(Stdio::null()).stderr(Stdio::null());
    let said = asked.output().ok().filter(|said| said.status.success());
    said.map_or(0, |said| parse(&String::from_utf8_lossy(&said.stdout)))
}

/// Returns the number in `systemd 257 (257.9-1~deb13u1)`; 0 if there is none.
fn parse(said: &str) -> u32 {
    let rest = said.strip_prefix("systemd ").unwrap_or_default();
    let end = rest.find(|c: char| !c.is_ascii_digit());
    rest[..end.unwrap_or(rest.len())].parse().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_of_releases_and_candidates_are_read() {
        for (said, version) in [
            ("systemd 252 (252.39-1~deb12u2)\n+PAM +AUDIT\n", 252),
            ("systemd 257 (257.9-1~deb13u1)\n", 257),
            ("systemd 259~rc1 (259~rc1-1)\n", 259),
            ("systemd 300", 300),
            ("", 0),
            ("systemctl: not found\n", 0),
            ("systemd next (next)\n", 0),
        ] {
            assert_eq!(parse(said), version, "{said}");
        }
    }
}
