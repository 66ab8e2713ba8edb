//! Orchestrators that want one data directory: who they are, and where.

use super::Time;

/// Where a process is: what has to be the same for its pid to mean anything here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// machine-id(5)
    pub machine: String,
    /// Boot id of the kernel.
    pub boot: String,
    /// The PID namespace (pid_namespaces(7)), as /proc names it.
    pub namespace: String,
}

/// How another place relates to ours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    Here,
    /// This machine before it was booted.
    EarlierBoot,
    OtherNamespace,
    OtherMachine,
}

impl Locality {
    pub fn of(here: &Place, there: &Place) -> Locality {
        if here == there {
            Locality::Here
        } else if there.machine.is_empty() {
            // Written before runners told their place.
            Locality::EarlierBoot
        } else if here.machine != there.machine {
            Locality::OtherMachine
        } else if here.boot != there.boot {
            Locality::EarlierBoot
        } else {
            Locality::OtherNamespace
        }
    }

    /// For people; empty for who is here.
    pub fn words(self) -> &'static str {
        match self {
            Locality::Here => "",
            Locality::EarlierBoot => "before the last boot",
            Locality::OtherNamespace => "in another PID namespace",
            Locality::OtherMachine => "on another machine",
        }
    }
}

/// One that registered for a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runner {
    /// Number of its row: an active one writes under it.
    pub epoch: i64,
    /// Its rank: who arrived later has the higher one, and keeps it while standing by.
    pub seat: i64,
    /// Otherwise it waits.
    pub active: bool,
    /// The unit its process is in; empty if that is not known.
    pub unit: String,
    /// In its own PID namespace; 0 in rows of archivist 0.1.0.
    pub pid: u32,
    pub place: Place,
    /// What it holds or would hold, for people.
    pub components: String,
    /// systemd starts its unit again when it ends: its seat is kept for the next process.
    pub restarts: bool,
    pub since: Time,
}

impl Runner {
    /// `pid=12, archivist-orchestrator.service`
    pub fn named(&self) -> String {
        if self.unit.is_empty() {
            format!("pid={}", self.pid)
        } else {
            format!("pid={}, {}", self.pid, self.unit)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_told_apart() {
        let place = |machine: &str, boot: &str, namespace: &str| Place {
            machine: machine.into(),
            boot: boot.into(),
            namespace: namespace.into(),
        };
        let here = place("m", "b", "n");
        assert_eq!(Locality::of(&here, &here), Locality::Here);
        assert_eq!(
            Locality::of(&here, &place("m", "b", "o")),
            Locality::OtherNamespace
        );
        assert_eq!(
            Locality::of(&here, &place("m", "c", "n")),
            Locality::EarlierBoot
        );
        assert_eq!(
            Locality::of(&here, &place("", "b", "")),
            Locality::EarlierBoot
        );
        // A container may have the machine's kernel and an id of its own.
        assert_eq!(
            Locality::of(&here, &place("o", "b", "n")),
            Locality::OtherMachine
        );
    }
}
