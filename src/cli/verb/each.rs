//! One thing done to several crawls and snapshots: one that cannot be done keeps nothing else from it.

use crate::client::exit::{Exit, Failure};
use crate::display::look;
use archivist_core::model::Owner;

/// Calls `act` for each and prints what it answers. The last failure is the command's, those before it
/// are told; without an orchestrator there is nothing to go on with.
pub async fn each<A>(ids: &[Owner], act: A) -> Result<Exit, Failure>
where
    A: AsyncFn(String) -> Result<String, Failure>,
{
    let mut failed: Option<Failure> = None;
    for id in ids {
        match act(id.to_string()).await {
            Ok(told) => look::print(&format!("{told}\n"))?,
            Err(failure) => {
                if let Some(before) = failed.take() {
                    before.report();
                }
                let is_over = failure.is_unreachable();
                failed = Some(failure);
                if is_over {
                    break;
                }
            }
        }
    }
    match failed {
        Some(failure) => Err(failure),
        None => Ok(Exit::Done),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CrawlId, SnapshotId};
    use std::cell::RefCell;

    #[tokio::test]
    async fn one_that_cannot_be_done_keeps_nothing_else_from_it() {
        let ids = [
            Owner::Crawl(CrawlId(1)),
            Owner::Snapshot(SnapshotId(2)),
            Owner::Crawl(CrawlId(3)),
        ];
        let done = RefCell::new(Vec::new());
        let act = async |id: String| {
            done.borrow_mut().push(id.clone());
            match id.as_str() {
                "c3" => Ok(String::new()),
                _ => Err(Failure::failed(format!("there is no {id}"))),
            }
        };
        let failure = each(&ids, act).await.unwrap_err();
        assert_eq!(failure.message(), "there is no s2");
        assert_eq!(*done.borrow(), ["c1", "s2", "c3"]);
    }
}
