//! `archivist worker`: becomes the worker of a crawl or snapshot. An orchestrator of before the
//! package had two programs starts its workers so, until it is restarted.

use super::exit::{Exit, Failure};
use super::orchestrator::become_it;
use crate::config::Scope;

pub fn run(scope: &Scope) -> Result<Exit, Failure> {
    become_it(scope, &["worker"])
}
