//! The distribution of the machine.

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Distribution {
    /// Debian, and distributions that are assumed to have its packages.
    #[default]
    Debian,
    Ubuntu,
}

impl Distribution {
    /// Returns the distribution that an os-release(5) file names. Derivatives of Ubuntu such as
    /// Linux Mint have an ID of their own, and a package of chromium.
    pub fn of(os_release: &str) -> Distribution {
        let mut ids = os_release.lines().filter_map(|line| line.strip_prefix("ID="));
        match ids.next_back().map(|id| id.trim().trim_matches(['"', '\''])) {
            Some("ubuntu") => Distribution::Ubuntu,
            _ => Distribution::Debian,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ubuntu_itself_is_ubuntu() {
        let noble = "NAME=\"Ubuntu\"\nVERSION_ID=\"24.04\"\nID=ubuntu\nID_LIKE=debian\n";
        assert_eq!(Distribution::of(noble), Distribution::Ubuntu);
        for other in ["ID=debian\n", "ID=linuxmint\nID_LIKE=\"ubuntu debian\"\n", ""] {
            assert_eq!(Distribution::of(other), Distribution::Debian, "{other}");
        }
    }
}
