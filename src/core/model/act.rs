//! What the users of the bus may do: a kind of act for each call, and the rule of each kind.

/// What a call of the interface for users does to what others have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Act {
    /// Reads, or concerns the caller alone.
    Read,
    /// Queues something: pages, checks, or what failed or is missing.
    Queue,
    /// Stops or continues what runs or waits. Files that were saved stay, and a retry queues it again.
    Control,
    /// Installs programs into the library of the machine.
    Install,
    /// Changes settings of a crawl, or runs hooks again whose files are replaced.
    Change,
    /// Deletes files that were saved, here and in the store.
    Delete,
    Pin,
    /// Allows the deletion of what a user kept from it.
    Unpin,
    /// Concerns the machine as a whole.
    Machine,
}

/// What a decision about an [`Act`] depends on. The caller is neither root nor the only user of the archive.
#[derive(Clone, Copy, Debug, Default)]
pub struct Standing {
    /// Whether the caller added the crawl, or the crawl of the page.
    pub is_own: bool,
    pub has_pinned: bool,
    pub members_install: bool,
    pub members_delete: bool,
}

/// The calls of users: methods of the interface org.archivist1.Manager, and of those of features with the name of
/// the interface before. Some calls of a method differ by their arguments: the words after the name say which
/// these are.
pub const CALLS: [(&str, Act); 47] = [
    ("AwaitUnits", Act::Read),
    ("Draft", Act::Read),
    ("List", Act::Read),
    ("Metrics", Act::Read),
    ("Plugins", Act::Read),
    ("Register", Act::Read),
    ("Show", Act::Read),
    ("Status", Act::Read),
    ("Subscribe", Act::Read),
    ("UnknownSettings", Act::Read),
    ("Unsubscribe", Act::Read),
    ("Watch", Act::Read),
    ("WatchStatus", Act::Read),
    ("Why", Act::Read),
    ("Retention.Expired", Act::Read),
    ("Search.Search", Act::Read),
    ("Store.Fetch", Act::Read),
    ("Watches.Await", Act::Read),
    ("Watches.History", Act::Read),
    ("Watches.List", Act::Read),
    ("Watches.Why", Act::Read),
    ("Add", Act::Queue),
    ("Retry", Act::Queue),
    ("Run", Act::Queue),
    ("Update", Act::Queue),
    ("Watches.Check", Act::Queue),
    ("Abort", Act::Control),
    ("Cancel", Act::Control),
    ("Hold", Act::Control),
    ("Interrupt", Act::Control),
    ("Pause", Act::Control),
    ("Proceed", Act::Control),
    ("Resume", Act::Control),
    ("Watches.Cancel", Act::Control),
    ("Install", Act::Install),
    ("Amend", Act::Change),
    ("Tag", Act::Change),
    ("RetryAll", Act::Change),
    (RETRY_HOOK, Act::Change),
    ("Delete", Act::Delete),
    ("Pin", Act::Pin),
    ("Unpin", Act::Unpin),
    ("Reload", Act::Machine),
    ("RenameTag", Act::Machine),
    ("Retention.Confirm", Act::Machine),
    ("Search.Rebuild", Act::Machine),
    ("Store.Test", Act::Machine),
];

/// The entry of a retry of one hook, of the pages that the caller names: also of those where it succeeded.
pub const RETRY_HOOK: &str = "Retry with an id and a hook";

impl Act {
    /// All acts, in the order of the manual.
    pub const ALL: [Act; 9] = [
        Act::Read,
        Act::Queue,
        Act::Control,
        Act::Install,
        Act::Change,
        Act::Delete,
        Act::Pin,
        Act::Unpin,
        Act::Machine,
    ];

    /// Returns the act of a call, an entry of [`CALLS`]. A call without an entry is for root alone.
    pub fn of(call: &str) -> Act {
        let found = CALLS.iter().find(|(name, _)| *name == call);
        found.map_or(Act::Machine, |(_, act)| *act)
    }

    /// Returns whether every caller that the policy of the bus admits may do this, whatever is concerned.
    pub fn is_for_all(self) -> bool {
        self.admits(Standing::default())
    }

    /// Returns whether a caller may do this who is neither root nor the only user of the archive.
    pub fn admits(self, standing: Standing) -> bool {
        match self {
            Act::Read | Act::Queue | Act::Control => true,
            Act::Install => standing.members_install,
            Act::Change => standing.is_own,
            Act::Delete | Act::Pin => standing.is_own || standing.members_delete,
            Act::Unpin => standing.has_pinned,
            Act::Machine => false,
        }
    }

    /// Text for the manual: the users that may do this.
    pub fn callers(self) -> &'static str {
        match self {
            Act::Read | Act::Queue | Act::Control => "root and all members of the group",
            Act::Install => "root; members, unless MembersInstall=no",
            Act::Change => "root; the user who added the crawl",
            Act::Delete | Act::Pin => {
                "root; the user who added the crawl; others if MembersDelete=yes"
            }
            Act::Unpin => "root; the user who pinned it",
            Act::Machine => "root",
        }
    }

    /// Text for the manual: why.
    pub fn reason(self) -> &'static str {
        match self {
            Act::Read => "It changes nothing, or the caller alone.",
            Act::Queue => {
                "It adds to the queue, which all members share; nothing that was saved is replaced."
            }
            Act::Control => {
                "It ends or delays work, so that a member can stop a crawl that fills the machine; nothing that was saved is lost, and archivist retry queues it again."
            }
            Act::Install => {
                "Its hooks write the library, whose programs run in the crawls of all users."
            }
            Act::Change => {
                "Settings choose programs and arguments of hooks, and a hook that runs again replaces the files of its last success."
            }
            Act::Delete => "It removes what was saved, here and in the store.",
            Act::Pin => "A pin keeps the owner from deleting, and Quota= from making space.",
            Act::Unpin => "A pin is the promise of the user who set it.",
            Act::Machine => "It is work or a change for the whole machine.",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_act_has_its_condition() {
        let none = Standing::default();
        let own = Standing { is_own: true, ..none };
        let pinned = Standing { has_pinned: true, ..none };
        let install = Standing { members_install: true, ..none };
        let delete = Standing { members_delete: true, ..none };
        let admitted = |standing: Standing| -> Vec<Act> {
            let all = Act::ALL.into_iter();
            all.filter(|act| act.admits(standing) && !act.is_for_all()).collect()
        };
        assert_eq!(admitted(none), []);
        assert_eq!(admitted(own), [Act::Change, Act::Delete, Act::Pin]);
        assert_eq!(admitted(pinned), [Act::Unpin]);
        assert_eq!(admitted(install), [Act::Install]);
        assert_eq!(admitted(delete), [Act::Delete, Act::Pin]);
    }

    #[test]
    fn call_without_an_entry_is_for_root() {
        assert_eq!(Act::of("Delete"), Act::Delete);
        assert_eq!(Act::of("Destroy"), Act::Machine);
        let mut names: Vec<&str> = CALLS.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), CALLS.len(), "each call has one entry");
    }
}
