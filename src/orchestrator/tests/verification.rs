//! Recordings of pages that ended are replayed, one at a time, when nothing else is left to do.

use super::bed::Bed;
use crate::main_loop::event::Event;
use crate::main_loop::rooms::Which;
use crate::verification::place;
use archivist_core::model::{RunId, SnapshotId, fidelity};
use archivist_core::store::Copy;
use archivist_plugin::sample;
use archivist_shared::bus::documents::report::AddOptions;
use serde_json::json;
use std::path::PathBuf;

const HOOK: &str = "on_Snapshot__85_verify.sh";

fn bed(share: u32) -> Bed {
    let mut bed = Bed::new();
    let switch = json!({"properties": {"VERIFY_ENABLED": {"type": "boolean", "default": false}}});
    bed.engine.catalogue = sample::catalogue([
        sample::plugin("wacz", json!({}), &["on_Snapshot__10_wacz.sh"]),
        sample::plugin("verify", switch, &[HOOK]),
    ]);
    bed.engine.settings.verify_replay = share;
    bed
}

/// Archives this many pages of one host. Replays wait.
fn archive(bed: &mut Bed, pages: usize) {
    let urls: Vec<String> = (1..=pages).map(|n| format!("http://a.example/{n}")).collect();
    bed.add_with(&urls.join("\n"), AddOptions::default());
    until_over(bed);
}

fn until_over(bed: &mut Bed) {
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else { return };
        assert!(unit(bed).is_none(), "a page is replayed while another is archived");
        bed.world.end(&hook, 1, 0, "success");
    }
}

fn unit(bed: &Bed) -> Option<String> {
    let mut units = bed.running_of("-verify-");
    assert!(units.len() < 2, "{units:?}");
    units.pop()
}

fn record_of(bed: &mut Bed, unit: &str) -> PathBuf {
    let run: RunId = bed.look(|tx| tx.open_unit(unit)).unwrap().id;
    crate::verification::files::record_path(&bed.engine.scope, run)
}

/// Ends the replay that runs, with this share; without one, it is killed.
fn end(bed: &mut Bed, share: Option<f64>) {
    let unit = unit(bed).expect("no page is being replayed");
    match share {
        Some(share) => {
            let figures = json!({"fidelity": share, "resources": share});
            let record =
                json!({"type": "ArchiveResult", "status": "succeeded", "figures": figures});
            let path = record_of(bed, &unit);
            std::fs::write(path, record.to_string()).unwrap();
            bed.world.end(&unit, 1, 0, "success");
        }
        None => bed.world.end(&unit, 2, 9, "signal"),
    }
    bed.until_quiet();
}

/// Ends all replays with this share. Returns how many there were.
fn end_all(bed: &mut Bed, share: f64) -> usize {
    let mut count = 0;
    while unit(bed).is_some() {
        end(bed, Some(share));
        count += 1;
    }
    count
}

fn shown(bed: &mut Bed, page: i64) -> Option<f64> {
    let figures = bed.look(|tx| tx.shown_by_replay(SnapshotId(page)));
    figures.and_then(|figures| fidelity(&figures))
}

#[test]
fn first_page_of_a_host_is_replayed_and_a_share_of_the_others() {
    let mut bed = bed(5);
    archive(&mut bed, 40);
    let first = unit(&bed).unwrap();
    let launch = bed.world.units[&first].stdin.clone().unwrap();
    let launch = String::from_utf8_lossy(&launch);
    assert!(launch.contains(HOOK) && launch.contains("VERIFY_ENABLED=True"), "{launch}");
    assert!(launch.contains("--snapshot-id=s1\0"), "{launch}");
    let chosen = (2..=40).filter(|id| place(SnapshotId(*id)) < 5).count();
    assert!((1..=3).contains(&chosen), "{chosen}");
    assert_eq!(end_all(&mut bed, 1.0), 1 + chosen);
    assert_eq!(shown(&mut bed, 1), Some(1.0));
    assert_eq!(bed.look(|tx| tx.unfaithful_pages(9)).pages, 0);
    assert!(!bed.look(|tx| tx.has_replays()));
}

#[test]
fn replay_that_does_not_hold_is_made_again_before_it_is_believed() {
    let mut bed = bed(100);
    archive(&mut bed, 2);
    end(&mut bed, Some(0.5));
    assert_eq!(shown(&mut bed, 1), None);
    end(&mut bed, Some(0.6));
    assert_eq!(shown(&mut bed, 1), Some(0.6));
    // Nothing is known of a replay that was killed, and the next one says why it failed.
    end(&mut bed, None);
    end(&mut bed, None);
    let why = bed.look(|tx| tx.replay_problem(SnapshotId(2))).unwrap();
    assert!(why.contains("SIGKILL") || why.contains("signal"), "{why}");
    assert!(unit(&bed).is_none());
    let unfaithful = bed.look(|tx| tx.unfaithful_pages(9));
    assert_eq!((unfaithful.pages, unfaithful.newest), (1, vec![SnapshotId(1)]));
}

#[test]
fn page_that_is_archived_again_is_replayed_again() {
    let mut bed = bed(100);
    archive(&mut bed, 1);
    let before = unit(&bed).unwrap();
    assert!(bed.retry_some(Some("s1".parse().unwrap()), Which::All) > Some(0));
    loop {
        bed.until_quiet();
        let Some(hook) = bed.running_hook() else { break };
        bed.world.end(&hook, 1, 0, "success");
    }
    // What the first unit saw may be of either recording.
    assert_eq!(unit(&bed), Some(before));
    end(&mut bed, Some(0.1));
    assert_eq!(shown(&mut bed, 1), None);
    end(&mut bed, Some(0.99));
    assert_eq!(shown(&mut bed, 1), Some(0.99));
    assert!(unit(&bed).is_none());
}

#[test]
fn nothing_is_replayed_that_is_off_or_gone() {
    let mut bed = bed(0);
    archive(&mut bed, 3);
    assert!(unit(&bed).is_none());
    // Turned on, the pages that wait are next; files that only the store has are not fetched for it.
    bed.engine.settings.verify_replay = 100;
    let tx = bed.database.begin().unwrap();
    tx.set_copy(SnapshotId(1), &Copy { is_local: false, ..Copy::default() }).unwrap();
    tx.commit().unwrap();
    bed.turn(vec![Event::Due]);
    bed.until_quiet();
    assert_eq!(end_all(&mut bed, 1.0), 2);
    assert_eq!(shown(&mut bed, 1), None);
    let config = [("VERIFY_ENABLED".to_owned(), "no".to_owned())].into();
    bed.add_with("http://b.example/", AddOptions { config, ..AddOptions::default() });
    until_over(&mut bed);
    assert!(unit(&bed).is_none());
    assert!(!bed.look(|tx| tx.has_replays()));
}
