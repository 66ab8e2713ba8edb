//! Which user may make which call: the policy of the bus and the rules of the orchestrator together.

use super::bed::Bed;
use crate::bus::call::Refusal;
use crate::calls::requests::Request;
use crate::calls::tag::{ChangeTags, RenameTag};
use crate::deletion::Delete;
use crate::expiry::RetentionCall;
use crate::indexing::Rebuild;
use crate::main_loop::rooms::Which;
use crate::programs::Install;
use crate::service;
use crate::transfer::StoreCall;
use archivist_core::model::{Act, CALLS, CrawlId, Owner, RETRY_HOOK, SnapshotId};
use archivist_shared::bus::documents::report::{AddOptions, Deleted};
use std::collections::BTreeSet;
use std::sync::Arc;

const POLICY: &str =
    include_str!("../../../packaging/tree/usr/share/dbus-1/system.d/org.archivist1.conf");

/// User ids of the callers, which have no name here. The timer and the stranger are not in the group.
const ROOT: u32 = 0;
const OWNER: u32 = 3_000_000;
const MEMBER: u32 = 3_000_001;
const TIMER: u32 = 3_000_002;
const STRANGER: u32 = 3_000_003;
/// The callers in the order of the columns of [`MATRIX`].
const CALLERS: [u32; 5] = [ROOT, OWNER, MEMBER, TIMER, STRANGER];

/// Each call, with the callers that may make it about a crawl that OWNER added: root, the owner, another
/// member, the services of timers, a user outside of the group.
const MATRIX: [(&str, &str); 47] = [
    ("Abort", "rom--"),
    ("Add", "rom--"),
    ("Amend", "ro---"),
    ("AwaitUnits", "rom--"),
    ("Cancel", "rom--"),
    ("Delete", "ro---"),
    ("Draft", "rom--"),
    ("Hold", "rom--"),
    ("Install", "rom--"),
    ("Interrupt", "rom--"),
    ("List", "rom--"),
    ("Metrics", "romt-"),
    ("Pause", "rom--"),
    ("Pin", "ro---"),
    ("Plugins", "rom--"),
    ("Proceed", "rom--"),
    ("Register", "rom--"),
    ("Reload", "r----"),
    ("RenameTag", "r----"),
    ("Resume", "rom--"),
    ("Retention.Confirm", "r----"),
    ("Retention.Expired", "rom--"),
    (RETRY_HOOK, "ro---"),
    ("Retry", "romt-"),
    ("RetryAll", "ro---"),
    ("Run", "rom--"),
    ("Search.Rebuild", "r----"),
    ("Search.Search", "r----"),
    ("Show", "rom--"),
    ("Status", "romt-"),
    ("Store.Fetch", "rom--"),
    ("Store.Test", "r----"),
    ("Subscribe", "rom--"),
    ("Tag", "ro---"),
    ("UnknownSettings", "rom--"),
    ("Unpin", "r----"),
    ("Unsubscribe", "rom--"),
    ("Update", "rom--"),
    ("Watch", "rom--"),
    ("WatchStatus", "rom--"),
    ("Watches.Await", "rom--"),
    ("Watches.Cancel", "rom--"),
    ("Watches.Check", "romt-"),
    ("Watches.History", "rom--"),
    ("Watches.List", "rom--"),
    ("Watches.Why", "rom--"),
    ("Why", "rom--"),
];

/// The value of an attribute of a line of the policy.
fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!(" {name}=\""))?;
    rest.split_once('"').map(|(value, _)| value)
}

/// Whether the policy lets a caller call a method of the interface for users: the last rule that fits decides,
/// and rules of users come after those of groups, and these after the default (dbus-daemon(1)).
fn is_admitted(caller: u32, method: &str) -> bool {
    let (interface, method) = method.split_once('.').unwrap_or(("Manager", method));
    let interface = format!("org.archivist1.{interface}");
    let mut contexts = vec!["context=\"default\"".to_owned()];
    contexts.push(match caller {
        ROOT => "user=\"root\"".to_owned(),
        TIMER => "user=\"archivist-timer\"".to_owned(),
        STRANGER => "user=\"stranger\"".to_owned(),
        _ => "group=\"archivist\"".to_owned(),
    });
    let mut is_allowed = false;
    for context in contexts {
        let head = format!("<policy {context}>");
        let Some((_, rest)) = POLICY.split_once(&head) else {
            continue;
        };
        let rules = rest.split_once("</policy>").unwrap().0.lines();
        for rule in rules.map(str::trim).filter(|rule| rule.contains(" send_destination=")) {
            let fits = |name: &str, value: &str| attribute(rule, name).is_none_or(|of| of == value);
            if fits("send_interface", &interface) && fits("send_member", method) {
                is_allowed = rule.starts_with("<allow");
            }
        }
    }
    is_allowed
}

/// The methods of the interfaces for users, as these describe themselves.
fn methods() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (name, description) in service::descriptions() {
        let interface = match name.strip_prefix("org.archivist1.").unwrap() {
            "Manager" => String::new(),
            "Worker" | "Node" => continue,
            feature => format!("{feature}."),
        };
        let lines = description.lines().map(str::trim);
        let methods = lines.filter(|line| line.starts_with("<method "));
        found
            .extend(methods.map(|line| format!("{interface}{}", attribute(line, "name").unwrap())));
    }
    found
}

/// A sealed crawl of OWNER, with the page s1.
fn archived() -> Bed {
    let mut bed = Bed::new();
    add(&mut bed, OWNER);
    bed
}

fn add(bed: &mut Bed, user: u32) {
    bed.request(Request::Add {
        lines: Arc::new(b"http://a.example/\n".to_vec()),
        options: AddOptions::default(),
        user,
        joins: false,
        so_far: None,
    });
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else {
            return;
        };
        bed.world.end(&hook, 1, 0, "success");
    }
}

/// Returns why the orchestrator refuses a call about the first page to a user, if it does.
fn refusal(bed: &mut Bed, call: &str, user: u32) -> Option<String> {
    fn why<T>(answer: Option<Result<T, Refusal>>) -> Option<String> {
        match answer?.err()? {
            Refusal::Denied(why) => Some(why),
            other => panic!("{other}"),
        }
    }
    let id = Owner::Snapshot(SnapshotId(1));
    let retry = |bed: &mut Bed, which: Which| {
        // What this asks for may leave its final state.
        bed.finals.clear();
        why(bed.request(Request::Retry { id: Some(id), which, user, so_far: None }))
    };
    let pin = |bed: &mut Bed, pinned: bool| {
        why(bed.request(Request::Pin { id, pinned, dry_run: false, user }))
    };
    match call {
        "Amend" => why(bed.request(Request::Amend {
            id,
            config: [("TIMEOUT".to_owned(), "9".to_owned())].into(),
            user,
        })),
        "Delete" => {
            let answer = bed.request(Delete { ids: vec![id], dry_run: true, user });
            let answer: Deleted = serde_json::from_str(&answer?.unwrap()).unwrap();
            answer.left.into_iter().next().map(|left| left.reason)
        }
        "Install" => why(bed.request(Install { names: vec!["beta".to_owned()], user })),
        "Pin" => pin(bed, true),
        "Unpin" => {
            let tx = bed.database.begin().unwrap();
            tx.set_pinned(id, Some(ROOT)).unwrap();
            tx.commit().unwrap();
            pin(bed, false)
        }
        "Tag" => why(bed.request(ChangeTags {
            id,
            add: vec!["new".to_owned()],
            remove: Vec::new(),
            user,
        })),
        "RenameTag" => {
            let tx = bed.database.begin().unwrap();
            tx.tag_snapshot(SnapshotId(1), "old").unwrap();
            tx.commit().unwrap();
            why(bed.request(RenameTag { old: "old".to_owned(), new: "new".to_owned(), user }))
        }
        "Retention.Confirm" => why(bed.request(RetentionCall::Confirm { user })),
        "Search.Rebuild" => why(bed.request(Rebuild { user })),
        "Reload" => why(bed.request(Request::Reload { user })),
        "Store.Test" => why(bed.request(StoreCall::Test { user })),
        "RetryAll" => retry(bed, Which::All),
        RETRY_HOOK => retry(bed, Which::Hook("alpha".to_owned())),
        other => panic!("no request for '{other}', which is not for all"),
    }
}

#[test]
fn every_method_has_a_rule_and_every_rule_a_method() {
    let of_table: BTreeSet<String> =
        CALLS.iter().map(|(call, _)| call.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(methods(), of_table);
    let of_matrix: BTreeSet<&str> = MATRIX.iter().map(|(call, _)| *call).collect();
    let calls: BTreeSet<&str> = CALLS.iter().map(|(call, _)| *call).collect();
    assert_eq!(of_matrix, calls);
}

#[test]
fn callers_may_do_what_the_table_says() {
    for (call, expected) in MATRIX {
        let method = call.split(' ').next().unwrap();
        let mut found = String::new();
        for (caller, letter) in CALLERS.into_iter().zip("romts".chars()) {
            let is_for_all = Act::of(call).is_for_all();
            let may = is_admitted(caller, method)
                && (is_for_all || refusal(&mut archived(), call, caller).is_none());
            found.push(if may { letter } else { '-' });
        }
        assert_eq!(found, expected, "{call}");
    }
}

#[test]
fn refusals_say_whose_it_is_and_what_to_do() {
    let mut bed = archived();
    let delete = refusal(&mut bed, "Delete", MEMBER).unwrap();
    assert_eq!(
        delete,
        "s1 was added by user 3000000; to delete it, run this as that user or as root, or have root set MembersDelete=yes in archivist.conf(5)"
    );
    let unpin = refusal(&mut bed, "Unpin", OWNER).unwrap();
    assert_eq!(unpin, "s1 was pinned by user root; to unpin it, run this as that user or as root");
    let reload = refusal(&mut bed, "Reload", OWNER).unwrap();
    assert!(reload.starts_with("Reload is for root alone"), "{reload}");
}

/// A member adds a page, another one does not get it by changing its settings, and pins are of who set them.
#[test]
fn members_delete_everything_if_root_says_so() {
    let mut bed = archived();
    assert!(refusal(&mut bed, "Amend", MEMBER).is_some());
    assert!(refusal(&mut bed, "Amend", ROOT).is_none());
    assert!(refusal(&mut bed, "Delete", OWNER).is_none(), "still its own");
    bed.engine.settings.members_delete = true;
    assert!(refusal(&mut bed, "Delete", MEMBER).is_none());
    assert!(refusal(&mut bed, "Pin", MEMBER).is_none());
    let pinned_by = |bed: &mut Bed| bed.look(|tx| tx.pinned_by(Owner::Snapshot(SnapshotId(1))));
    assert_eq!(pinned_by(&mut bed), Some(MEMBER));
    assert!(refusal(&mut bed, "Pin", OWNER).is_none());
    assert_eq!(pinned_by(&mut bed), Some(MEMBER), "the first pin stays");
    assert!(refusal(&mut bed, "Pin", ROOT).is_none());
    assert_eq!(pinned_by(&mut bed), Some(ROOT), "root takes it over");
    assert!(refusal(&mut bed, "Unpin", MEMBER).is_some());
    assert!(refusal(&mut bed, "Unpin", ROOT).is_none());
    assert_eq!(pinned_by(&mut bed), None);
}

#[test]
fn one_user_of_an_own_archive_may_do_everything() {
    for (call, _) in MATRIX.iter().filter(|(call, _)| !Act::of(call).is_for_all()) {
        let mut bed = archived();
        bed.engine.scope.user = true;
        assert_eq!(refusal(&mut bed, call, MEMBER), None, "{call}");
    }
}

#[test]
fn pages_of_the_fleet_are_for_root_alone() {
    let mut bed = Bed::new();
    add(&mut bed, archivist_core::model::FLEET);
    let why = refusal(&mut bed, "Delete", MEMBER).unwrap();
    assert!(why.starts_with("s1 was added by another node of the fleet"), "{why}");
    assert!(refusal(&mut bed, "Delete", ROOT).is_none());
    let users = bed.look(|tx| tx.crawl(CrawlId(1))).unwrap().users;
    assert_eq!(users, BTreeSet::from([archivist_core::model::FLEET]));
}
