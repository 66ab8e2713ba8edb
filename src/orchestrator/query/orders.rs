//! The questions of users as orders.

use crate::bus::call::{Answer, Reply};
use crate::main_loop::order::{Call, Order, UserCall};
use crate::main_loop::saved;
use crate::main_loop::turn::{Turn, TurnResult};
use crate::programs;
use crate::query;
use archivist_core::model::{AnyId, Owner, RunId};
use archivist_shared::bus::documents::report::Filter;

/// A question.
#[derive(Clone)]
pub(crate) enum Query {
    /// Describe queue, running units and machine.
    /// Gets the JSON of [`Status`](archivist_shared::bus::documents::report::Status).
    Status,
    /// Gets the JSON of [`Metrics`](archivist_shared::bus::documents::report::Metrics).
    Metrics,
    /// Gets a JSON list.
    List {
        /// `crawls`, `snapshots`, `results`, `runs`, `hosts`, `timeline` or `binaries`.
        what: String,
        filter: Box<Filter>,
    },
    /// Describe a crawl or snapshot with its results and runs.
    /// Gets the JSON of [`Details`](archivist_shared::bus::documents::report::Details).
    Show { id: Owner },
    /// Describe a single run of a hook or worker.
    /// Gets the JSON of [`Details`](archivist_shared::bus::documents::report::Details).
    ShowRun { id: RunId },
    /// Explain why a crawl, snapshot or run waits or has failed.
    /// Gets the JSON of [`Why`](archivist_shared::bus::documents::report::Why), or for a run of
    /// [`WhyRun`](archivist_shared::bus::documents::report::WhyRun).
    Why { id: AnyId },
    /// Gets the JSON of [`Plugins`](archivist_shared::bus::documents::report::Plugins).
    Plugins,
}

impl Order for Query {
    fn carry_out(&self, turn: &mut Turn<'_>, reply: &Reply) -> TurnResult<Option<Answer>> {
        Ok(Some(match self {
            Query::Status => Answer::json(&query::status(turn)?)?,
            Query::Metrics => Answer::json(&query::metrics(turn)?)?,
            Query::List { what, filter } => {
                let again = || Call::new(self.clone(), reply);
                if what == "binaries" && programs::inspect_all(turn, Some(again()))? {
                    return Ok(None);
                }
                Answer::Text(query::list(turn, what, filter)?)
            }
            Query::Show { id } => {
                if let Owner::Snapshot(page) = *id {
                    saved::is_still_saved(turn, page)?;
                }
                Answer::json(&query::details(turn, *id)?)?
            }
            Query::ShowRun { id } => Answer::json(&query::details_of_run(turn, *id)?)?,
            Query::Why { id: AnyId::Owner(id) } => Answer::json(&query::why(turn, *id)?)?,
            Query::Why { id: AnyId::Run(id) } => Answer::json(&query::why_run(turn, *id)?)?,
            Query::Plugins => Answer::json(&query::plugins(turn)?)?,
        }))
    }

    fn user_call(&self) -> Option<UserCall<'_>> {
        UserCall::of_all(match self {
            Query::Status => "Status",
            Query::Metrics => "Metrics",
            Query::List { .. } => "List",
            Query::Show { .. } | Query::ShowRun { .. } => "Show",
            Query::Why { .. } => "Why",
            Query::Plugins => "Plugins",
        })
    }

    fn is_heavy(&self) -> bool {
        !matches!(self, Query::Status)
    }
}
