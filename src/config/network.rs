//! `Network=`: the network of hooks, and what a private network requires.

use super::Scope;

archivist_core::text::named! {
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum NetworkMode {
        /// A private network where it is available and useful, otherwise the machine's.
        #[default]
        Auto = "auto",
        /// The machine's network.
        Host = "host",
        /// A private network for each crawl, connected to the Internet.
        Private = "private",
    }
}

/// Programs that `archivist-network@.service` runs, with their Debian packages.
const PROGRAMS: [(&str, &str); 2] = [("/usr/bin/pasta", "passt"), ("/usr/bin/ip", "iproute2")];

/// Network device on pasta's side.
const TUN: &str = "/dev/net/tun";

impl NetworkMode {
    /// Returns whether hooks of a crawl get a private network. With `auto`, hooks that may reach
    /// the machine's loopback do not: a private network does not contain it. `lack` is the result
    /// of [`lack`].
    pub fn is_own(self, lack: Option<&(String, String)>, reaches_loopback: bool) -> bool {
        match self {
            NetworkMode::Host => false,
            NetworkMode::Private => true,
            NetworkMode::Auto => !reaches_loopback && lack.is_none(),
        }
    }

    /// Returns what prevents the configured network on this machine, and how to fix it. `lack` is
    /// the result of [`lack`].
    pub fn obstacle(self, lack: Option<&(String, String)>) -> Option<(String, String)> {
        match self {
            NetworkMode::Auto | NetworkMode::Host => None,
            NetworkMode::Private => lack.cloned(),
        }
    }

    /// Returns the problem and the fix if the device that pasta needs is missing, as in many
    /// containers. For a process that sees the machine's /dev; the orchestrator does not.
    pub fn missing_device(self, scope: &Scope) -> Option<(String, String)> {
        if !self.is_own(lack(scope).as_ref(), false) || scope.rooted(TUN).exists() {
            return None;
        }
        Some((
            format!("Network={} needs {TUN}, which is missing: crawls fail", self.as_str()),
            format!("give the container {TUN}, or set Network=host in archivist.conf(5)"),
        ))
    }
}

/// Returns what a private network requires and this machine lacks, and how to fix it.
pub fn lack(scope: &Scope) -> Option<(String, String)> {
    if scope.user {
        let what = "Network=private is for the machine's orchestrator: a user's service manager cannot do it";
        return Some((what.to_owned(), "set Network=host".to_owned()));
    }
    let missing = PROGRAMS.iter().filter(|(program, _)| !scope.rooted(program).exists());
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
    fn missing_requirements_of_a_private_network_are_listed() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        assert_eq!(NetworkMode::Host.obstacle(lack(&scope).as_ref()), None);
        assert_eq!(NetworkMode::Auto.obstacle(lack(&scope).as_ref()), None);
        let (what, fix) = NetworkMode::Private.obstacle(lack(&scope).as_ref()).unwrap();
        assert_eq!(what, "Network=private needs /usr/bin/pasta and /usr/bin/ip");
        assert_eq!(fix, "apt install passt iproute2");
        assert!(!NetworkMode::Auto.is_own(lack(&scope).as_ref(), false));
        assert!(NetworkMode::Private.is_own(lack(&scope).as_ref(), true));

        std::fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        for (program, _) in PROGRAMS {
            std::fs::write(scope.rooted(program), "").unwrap();
        }
        assert_eq!(NetworkMode::Private.obstacle(lack(&scope).as_ref()), None);
        assert!(NetworkMode::Auto.is_own(lack(&scope).as_ref(), false));
        assert!(!NetworkMode::Auto.is_own(lack(&scope).as_ref(), true));
        assert!(!NetworkMode::Host.is_own(lack(&scope).as_ref(), false));
        let (what, _) = NetworkMode::Auto.missing_device(&scope).unwrap();
        assert_eq!(what, "Network=auto needs /dev/net/tun, which is missing: crawls fail");
        assert_eq!(NetworkMode::Host.missing_device(&scope), None);
        std::fs::create_dir_all(root.path().join("dev/net")).unwrap();
        std::fs::write(root.path().join("dev/net/tun"), "").unwrap();
        assert_eq!(NetworkMode::Auto.missing_device(&scope), None);
        let user = Scope { user: true, ..scope };
        assert!(NetworkMode::Private.obstacle(lack(&user).as_ref()).is_some());
        assert_eq!(NetworkMode::Host.obstacle(lack(&user).as_ref()), None);
        assert!(!NetworkMode::Auto.is_own(lack(&user).as_ref(), false));
    }
}
