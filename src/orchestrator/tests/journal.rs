//! The journal reports a change after its transaction was committed, and not otherwise.

use super::bed::{Bed, DATABASE};
use crate::calls::requests::Request;
use crate::main_loop::event::Event;
use crate::main_loop::order::Call;
use archivist_shared::bus::documents::report::AddOptions;
use rusqlite::Connection;
use std::cell::RefCell;
use std::fmt::Debug;
use std::sync::{Arc, Once};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Metadata, Subscriber};

thread_local! {
    /// The text of every log line of this thread, and so of one test.
    static LINES: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Keeps log lines. There is one for the process: with one for each test, tracing would ask the
/// subscriber of any thread whether a line that all of them can log is of interest.
pub struct Journal;

struct Message(String);

impl Visit for Message {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Journal {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &tracing::Event<'_>) {
        let mut message = Message(String::new());
        event.record(&mut message);
        LINES.with_borrow_mut(|lines| lines.push(message.0));
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

impl Journal {
    /// What was logged since the last call, of the lines with this text.
    pub fn take(&self, text: &str) -> Vec<String> {
        let lines = LINES.take().into_iter();
        lines.filter(|line| line.contains(text)).collect()
    }
}

/// Runs `story` with a journal.
pub fn with_journal(story: impl FnOnce(&Journal)) {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| tracing::subscriber::set_global_default(Journal).unwrap());
    LINES.take();
    story(&Journal);
}

/// From now on, or no longer, each commit fails that changed this table: a row is inserted that
/// breaks a foreign key, which SQLite checks at the commit.
fn fail_commits(bed: &Bed, table: &str, fail: bool) {
    let connection = Connection::open(bed.directory.path().join(DATABASE)).unwrap();
    let sql = if fail {
        format!(
            "CREATE TABLE broken (crawl REFERENCES crawl (id) DEFERRABLE INITIALLY DEFERRED);
             CREATE TRIGGER broken_insert AFTER INSERT ON {table}
                 BEGIN INSERT INTO broken VALUES (-1); END;
             CREATE TRIGGER broken_update AFTER UPDATE ON {table}
                 BEGIN INSERT INTO broken VALUES (-1); END;"
        )
    } else {
        "DROP TRIGGER broken_insert; DROP TRIGGER broken_update; DROP TABLE broken;".to_owned()
    };
    connection.execute_batch(&sql).unwrap();
}

fn add() -> Event {
    let lines = Arc::new(b"http://a.example/".to_vec());
    Event::Call(Call::own(Request::Add {
        lines,
        options: AddOptions::default(),
        user: 0,
        joins: false,
        so_far: None,
    }))
}

#[test]
fn a_failed_commit_logs_nothing_about_the_change() {
    with_journal(|journal| {
        let mut bed = Bed::new();
        fail_commits(&bed, "crawl", true);
        bed.try_turn(vec![add()]).unwrap_err();
        assert_eq!(journal.take("crawl"), [""; 0]);
        fail_commits(&bed, "crawl", false);
        bed.turn(vec![add()]);
        assert_eq!(journal.take("is added"), ["crawl c1 is added: 1 URLs, depth 0"]);
        bed.come_to_an_end();
    });
}

#[test]
fn a_report_that_is_retried_is_logged_once() {
    with_journal(|journal| {
        let mut bed = Bed::new();
        bed.add(1);
        bed.until_quiet();
        let hook = bed.running_hook().unwrap();
        bed.world.end(&hook, 1, 1, "exit-code");
        while bed.world.handle(super::world::Mood::Fine) || !bed.world.is_quiet() {
            bed.turn_with(9, 9, 0);
        }
        let report = bed.next_call();
        assert!(matches!(&report, Event::Call(call) if call.order.is_heavy()));
        fail_commits(&bed, "result", true);
        journal.take("");
        for _ in 0..3 {
            bed.try_turn(vec![report.clone()]).unwrap_err();
        }
        assert_eq!(journal.take("setup"), [""; 0]);
        fail_commits(&bed, "result", false);
        bed.turn(vec![report]);
        assert_eq!(journal.take("setup: failed").len(), 1);
        bed.come_to_an_end();
    });
}
