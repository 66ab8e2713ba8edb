//! A batch of events in one transaction.

use crate::database::{Database, DatabaseError, Durability};
use crate::engine::state::Engine;
use crate::main_loop::action::Action;
use crate::main_loop::event::Event;
use crate::main_loop::rooms::Rooms;
use crate::main_loop::turn::Turn;
use crate::main_loop::wait;
use archivist_core::model::{CrawlId, IdMarks, RunId, Time};
use archivist_core::plan::Outlook;
use archivist_shared::journal::message;
use std::collections::BTreeSet;

/// What a turn gets of the present, apart from the rows.
pub struct Moment<'a> {
    pub now: Time,
    /// CLOCK_BOOTTIME in milliseconds.
    pub boottime: i64,
    /// Spreads delays; in 0..1.
    pub jitter: f64,
    pub followed: &'a BTreeSet<CrawlId>,
    /// A client requested the signals about pages.
    pub is_subscribed: bool,
    /// Runs whose start systemd has not answered.
    pub unanswered: &'a BTreeSet<RunId>,
    /// What the commit must survive.
    pub durability: Durability,
}

/// What a committed transaction leaves to do.
pub struct Committed {
    pub actions: Vec<Action>,
    /// What is left to do after the starts; none if no event frees anything.
    pub outlook: Option<Outlook>,
    /// Positions of the events that are left for the next turn.
    pub left: Vec<usize>,
}

/// Runs the transaction.
///
/// # Errors
/// If the database fails. Nothing of the turn is in it then, and nothing was done.
pub(crate) fn run(
    database: &mut Database,
    engine: &mut Engine,
    rooms: &'static dyn Rooms,
    moment: &Moment<'_>,
    events: &mut [Event],
) -> Result<Committed, DatabaseError> {
    let decides = events.iter().any(Event::decides);
    engine.read_facts();
    let engine = &*engine;
    let marks = engine.unknown_ids();
    let tx = database.begin_with(moment.durability)?;
    let mut turn = Turn {
        tx: &tx,
        engine,
        rooms,
        now: moment.now,
        boottime: moment.boottime,
        jitter: moment.jitter,
        followed: moment.followed,
        is_subscribed: moment.is_subscribed,
        announced: 0,
        unanswered: moment.unanswered,
        leaving_out: BTreeSet::new(),
        disk_rate: 0,
        actions: Vec::new(),
        changes: BTreeSet::new(),
    };
    if let Some(archive) = marks
        && let Some(database) = tx.raise_ids(archive)?
    {
        turn.log(move || {
            tracing::warn!(
                message_id = message::IDS_RAISED,
                archivist_archive_ids = %archive,
                archivist_database_ids = %database,
                "the archive or its store has ids up to {archive}, {}; new ids are higher",
                if database == IdMarks::default() {
                    "and the database is new".to_owned()
                } else {
                    format!(
                        "the database only up to {database}: it is older than the archive, or another one uses the archive, too"
                    )
                }
            )
        });
    }
    turn.open()?;
    let left = wait::in_turn(events, |event| turn.event(event))?;
    let outlook = if decides {
        let outlook = turn.start_all()?;
        turn.close(&outlook)?;
        Some(outlook)
    } else {
        None
    };
    let actions = turn.actions;
    tx.commit()?;
    Ok(Committed { actions, outlook, left })
}
