//! The time line of a crawl over several nodes.

use crate::server::shared;
use crate::view::{Bed, CRAWL, page};
use archivist_core::fleet::{
    CommandVerb, Grant, HostKey, NodeRequest, PageEnd, PageTimes, Record, Release,
};
use archivist_core::model::{Owner, SnapshotId};
use archivist_shared::bus::documents::report::{Filter, Snapshot};
use std::time::Duration;

const TOOK: Duration = Duration::from_secs(3);
const AGO: Duration = Duration::from_secs(3600);

async fn end(bed: &mut Bed, node: usize, grant: &Grant, end: PageEnd, took: Duration) {
    let record = Record {
        page: grant.pages[0].id,
        epoch: grant.epoch,
        end,
        reason: None,
        directory: None,
        results: Vec::new(),
        children: Vec::new(),
        times: PageTimes { ended_ago: AGO, took },
    };
    bed.apply(node, NodeRequest::Record(record)).await;
}

fn filter(after: i64, limit: u32) -> Filter {
    Filter { owner: Some(Owner::Crawl(CRAWL)), after_page: Some(after), limit, ..Filter::default() }
}

fn shown(pages: &[Snapshot]) -> Vec<(i64, &str, Option<&str>)> {
    let pages = pages.iter();
    pages.map(|page| (page.id.0, page.status.as_str(), page.node.as_deref())).collect()
}

#[tokio::test]
async fn time_line_has_the_pages_of_each_node_in_batches() {
    let Some(server) = shared() else { return };
    let mut bed = Bed::new(server, "timeline").await;
    let hosts = ["a", "b", "c", "d", "e", "f"];
    bed.submit(hosts.map(|host| page(host, 0)).to_vec()).await;
    let grants = bed.claim(1, 3, 1).await;
    end(&mut bed, 1, &grants[0], PageEnd::Sealed, TOOK).await;
    end(&mut bed, 1, &grants[1], PageEnd::Cancelled, TOOK).await;
    end(&mut bed, 1, &grants[2], PageEnd::Cancelled, Duration::ZERO).await;
    let grants = bed.claim(0, 2, 1).await;
    // A node without this page any more: it waits for another one.
    let release = Release { host: HostKey("d".to_owned()), epoch: grants[0].epoch, pace: None };
    bed.apply(0, NodeRequest::Release(release)).await;

    let all: Vec<Snapshot> = bed.list("timeline", filter(0, 0)).await;
    let (web1, web2) = (Some("web1"), Some("web2"));
    let want = [(1, "sealed", web2), (2, "cancelled", web2), (5, "started", web1)];
    assert_eq!(shown(&all), want);
    let ended = all[0].ended_at.unwrap();
    assert_eq!(all[0].started_at, Some(ended.before(TOOK)));
    let ago = all[0].created_at.until(ended);
    assert!(ago <= AGO && ago > AGO - Duration::from_secs(300), "{ago:?}");
    let rest: Vec<Snapshot> = bed.list("timeline", filter(1, 1)).await;
    assert_eq!(shown(&rest), want[1..2]);
    let rest: Vec<Snapshot> = bed.list("timeline", filter(5, 1)).await;
    assert_eq!(shown(&rest), []);

    bed.command(CommandVerb::Pause, Owner::Crawl(CRAWL)).await;
    for (id, want) in [(5, &[(5, "paused", web1)][..]), (6, &[])] {
        let owner = Some(Owner::Snapshot(SnapshotId(id)));
        let one = Filter { owner, ..filter(0, 1) };
        let one: Vec<Snapshot> = bed.list("timeline", one).await;
        assert_eq!(shown(&one), want);
    }
}
