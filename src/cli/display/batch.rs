//! One action on several crawls and snapshots; a failure of one does not stop the others.

use crate::client::exit::{Exit, Failure};
use crate::display::style;

/// Calls `act` for each id and prints its answers. Prints every failure but the last, which it
/// returns. Stops at once if the orchestrator cannot be reached.
pub async fn for_each<I, A>(ids: &[I], act: A) -> Result<Exit, Failure>
where
    I: Copy,
    A: AsyncFn(I) -> Result<String, Failure>,
{
    let mut failed: Option<Failure> = None;
    for id in ids {
        match act(*id).await {
            Ok(message) => style::print(&format!("{message}\n"))?,
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
    use archivist_core::model::{CrawlId, Owner, SnapshotId};
    use std::cell::RefCell;

    #[tokio::test]
    async fn a_failure_of_one_id_does_not_stop_the_others() {
        let ids =
            [Owner::Crawl(CrawlId(1)), Owner::Snapshot(SnapshotId(2)), Owner::Crawl(CrawlId(3))];
        let done = RefCell::new(Vec::new());
        let act = async |id: Owner| {
            let id = id.to_string();
            done.borrow_mut().push(id.clone());
            match id.as_str() {
                "c3" => Ok(String::new()),
                _ => Err(Failure::failed(format!("there is no {id}"))),
            }
        };
        let failure = for_each(&ids, act).await.unwrap_err();
        assert_eq!(failure.message(), "there is no s2");
        assert_eq!(*done.borrow(), ["c1", "s2", "c3"]);
    }
}
