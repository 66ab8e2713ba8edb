//! `archivist worker`: becomes the worker of a crawl or snapshot. An orchestrator of before the
//! package had two programs starts its workers so, until it is restarted.

use crate::client::exit::{Exit, Failure};
use crate::verb::orchestrator::become_it;
use archivist_shared::config::Scope;

pub fn run(scope: &Scope) -> Result<Exit, Failure> {
    become_it(scope, &["worker"])
}
