//! Orchestrators that use or wait for a data directory, and where they run.

use super::Time;

/// Where a process runs: its pid is meaningful only where all of this is equal.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ProcessLocation {
    /// machine-id(5)
    pub machine: String,
    pub boot: String,
    /// The PID namespace (pid_namespaces(7)), as /proc names it.
    pub namespace: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Locality {
    /// The same PID namespace of the same boot: pids can be compared.
    Here,
    /// This machine before its last boot.
    EarlierBoot,
    /// This machine and boot, another PID namespace, such as a container.
    OtherNamespace,
    /// Another machine that shares the data directory.
    OtherMachine,
}

impl Locality {
    /// Compares a recorded location with that of this process.
    pub fn of(here: &ProcessLocation, there: &ProcessLocation) -> Locality {
        if here == there {
            Locality::Here
        } else if there.machine.is_empty() {
            // A row of a version that did not record its location.
            Locality::EarlierBoot
        } else if here.machine != there.machine {
            Locality::OtherMachine
        } else if here.boot != there.boot {
            Locality::EarlierBoot
        } else {
            Locality::OtherNamespace
        }
    }

    /// Returns a description; empty for `Here`.
    pub fn words(self) -> &'static str {
        match self {
            Locality::Here => "",
            Locality::EarlierBoot => "before the last boot",
            Locality::OtherNamespace => "in another PID namespace",
            Locality::OtherMachine => "on another machine",
        }
    }
}

/// An orchestrator that registered for a data directory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Runner {
    /// Epoch: the row number under which an active orchestrator writes.
    pub epoch: i64,
    /// Its rank: a later orchestrator has a higher rank, and keeps it while waiting.
    pub rank: i64,
    /// Active; otherwise it waits.
    pub active: bool,
    /// Unit of its process; empty if unknown.
    pub unit: String,
    /// In its own PID namespace; 0 in rows of archivist 0.1.0.
    pub pid: u32,
    /// Machine, boot and PID namespace of its process.
    pub place: ProcessLocation,
    /// Components that it runs or would run, for messages.
    pub components: String,
    /// systemd restarts its unit: the next process keeps its rank.
    pub restarts: bool,
    /// When it registered.
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
    fn locations_are_distinguished() {
        let place = |machine: &str, boot: &str, namespace: &str| ProcessLocation {
            machine: machine.into(),
            boot: boot.into(),
            namespace: namespace.into(),
        };
        let here = place("m", "b", "n");
        assert_eq!(Locality::of(&here, &here), Locality::Here);
        assert_eq!(Locality::of(&here, &place("m", "b", "o")), Locality::OtherNamespace);
        assert_eq!(Locality::of(&here, &place("m", "c", "n")), Locality::EarlierBoot);
        assert_eq!(Locality::of(&here, &place("", "b", "")), Locality::EarlierBoot);
        // A container may have the machine's kernel and an id of its own.
        assert_eq!(Locality::of(&here, &place("o", "b", "n")), Locality::OtherMachine);
    }
}
