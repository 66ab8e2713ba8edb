//! `Network=`: whose network hooks are in, and what a network of their own takes.

use super::Scope;

/// Whose network the hooks of a crawl are in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkMode {
    /// The machine's.
    #[default]
    Host,
    /// One that they have to themselves, with a way out.
    Private,
}

/// What `archivist-network@.service` runs, and the Debian packages that bring it.
const PROGRAMS: [(&str, &str); 2] = [("/usr/bin/pasta", "passt"), ("/usr/bin/ip", "iproute2")];

impl NetworkMode {
    pub fn as_str(self) -> &'static str {
        match self {
            NetworkMode::Host => "host",
            NetworkMode::Private => "private",
        }
    }

    pub fn parse(text: &str) -> Option<NetworkMode> {
        [NetworkMode::Host, NetworkMode::Private]
            .into_iter()
            .find(|network| network.as_str() == text)
    }

    /// What stands against it on this machine, and what to do about that.
    pub fn obstacle(self, scope: &Scope) -> Option<(String, String)> {
        if self == NetworkMode::Host {
            return None;
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_private_network_lacks() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        assert_eq!(NetworkMode::Host.obstacle(&scope), None);
        let (what, fix) = NetworkMode::Private.obstacle(&scope).unwrap();
        assert_eq!(what, "Network=private needs /usr/bin/pasta and /usr/bin/ip");
        assert_eq!(fix, "apt install passt iproute2");

        std::fs::create_dir_all(root.path().join("usr/bin")).unwrap();
        for (program, _) in PROGRAMS {
            std::fs::write(scope.rooted(program), "").unwrap();
        }
        assert_eq!(NetworkMode::Private.obstacle(&scope), None);
        let user = Scope {
            user: true,
            ..scope
        };
        assert!(NetworkMode::Private.obstacle(&user).is_some());
        assert_eq!(NetworkMode::Host.obstacle(&user), None);
    }
}
