//! `Network=`: whose network hooks are in, and what a network of their own takes.

use super::Scope;

/// Whose network the hooks of a crawl are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkMode {
    /// One of their own where that can be had and is of use, else the machine's.
    #[default]
    Auto,
    /// The machine's.
    Host,
    /// One that they have to themselves, with a way out.
    Private,
}

/// What `archivist-network@.service` runs, and the Debian packages that bring it.
const PROGRAMS: [(&str, &str); 2] = [("/usr/bin/pasta", "passt"), ("/usr/bin/ip", "iproute2")];

/// The device of pasta's end of a network.
const TUN: &str = "/dev/net/tun";

impl NetworkMode {
    pub fn as_str(self) -> &'static str {
        match self {
            NetworkMode::Auto => "auto",
            NetworkMode::Host => "host",
            NetworkMode::Private => "private",
        }
    }

    pub fn parse(text: &str) -> Option<NetworkMode> {
        [NetworkMode::Auto, NetworkMode::Host, NetworkMode::Private]
            .into_iter()
            .find(|network| network.as_str() == text)
    }

    /// Whether a crawl's hooks get a network of their own. With `auto` those that are to reach the
    /// machine's loopback do not: it is not there.
    pub fn is_own(self, scope: &Scope, reaches_loopback: bool) -> bool {
        match self {
            NetworkMode::Host => false,
            NetworkMode::Private => true,
            NetworkMode::Auto => !reaches_loopback && lack(scope).is_none(),
        }
    }

    /// What stands against it on this machine, and what to do about that.
    pub fn obstacle(self, scope: &Scope) -> Option<(String, String)> {
        match self {
            NetworkMode::Auto | NetworkMode::Host => None,
            NetworkMode::Private => lack(scope),
        }
    }

    /// The device that pasta needs for a crawl's own network, if it is missing, and what to do about that. Containers
    /// often lack it. For a process that sees the machine's /dev: the orchestrator does not.
    pub fn missing_device(self, scope: &Scope) -> Option<(String, String)> {
        if !self.is_own(scope, false) || scope.rooted(TUN).exists() {
            return None;
        }
        Some((
            format!(
                "Network={} needs {TUN}, which is not there: crawls fail",
                self.as_str()
            ),
            format!("give the container {TUN}, or set Network=host in archivist.conf(5)"),
        ))
    }
}

/// What a network of their own needs and is not there, and what to do about that.
pub fn lack(scope: &Scope) -> Option<(String, String)> {
    if scope.user {
        let what = "Network=private is for the machine's orchestrator: a user's service manager cannot do it";
        return Some((what.to_owned(), "set Network=host".to_owned()));
    }
    let missing = PROGRAMS
        .iter()
        .filter(|(program, _)| !scope.rooted(program).exists());
    let (programs, packages): (Vec<_>, Vec<_>) = missing.copied().unzip();
    if programs.is_empty() {
        return None;
    }
    Some((
        format!("Network=private needs {}", programs.join(" and ")),
        format!("apt install {}", packages.join(" ")),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_private_network_lacks() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        assert_eq!(NetworkMode::Host.obstacle(&scope), None);
        assert_eq!(NetworkMode::Auto.obstacle(&scope), None);
        let (what, fix) = NetworkMode::Private.obstacle(&scope).unwrap();
        assert_eq!(what, "Network=private needs /usr/bin/pasta and /usr/bin/ip");
        assert_eq!(fix, "apt install passt iproute2");
        assert!(!NetworkMode::Auto.is_own(&scope, false));
        assert!(NetworkMode::Private.is_own(&scope, true));

        std::fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        for (program, _) in PROGRAMS {
            std::fs::write(scope.rooted(program), "").unwrap();
        }
        assert_eq!(NetworkMode::Private.obstacle(&scope), None);
        assert!(NetworkMode::Auto.is_own(&scope, false));
        assert!(!NetworkMode::Auto.is_own(&scope, true));
        assert!(!NetworkMode::Host.is_own(&scope, false));
        let (what, _) = NetworkMode::Auto.missing_device(&scope).unwrap();
        assert_eq!(
            what,
            "Network=auto needs /dev/net/tun, which is not there: crawls fail"
        );
        assert_eq!(NetworkMode::Host.missing_device(&scope), None);
        std::fs::create_dir_all(root.path().join("dev/net")).unwrap();
        std::fs::write(root.path().join("dev/net/tun"), "").unwrap();
        assert_eq!(NetworkMode::Auto.missing_device(&scope), None);
        let user = Scope {
            user: true,
            ..scope
        };
        assert!(NetworkMode::Private.obstacle(&user).is_some());
        assert_eq!(NetworkMode::Host.obstacle(&user), None);
        assert!(!NetworkMode::Auto.is_own(&user, false));
    }
}
