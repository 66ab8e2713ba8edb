//! Hosts, and which node leases them.

use super::*;
use archivist_shared::bus::documents::report::Host;

pub(super) const TEXTS: &[&str] = &[HOSTS];

/// Open pages of a host are counted up to this number.
const OPEN_MAX: i64 = 1000;

/// Hosts after `$1`, by name.
const HOSTS: &str = concat!(
    "SELECT h.key, h.delay_ms, n.name, ",
    ms!("h.lease_until"),
    ", (SELECT count(*) FROM (
        SELECT FROM archivist.page p WHERE p.host = h.key AND p.status = 'open' AND p.id >= h.from_page LIMIT $3) o)
    FROM archivist.host h
    LEFT JOIN archivist.node n ON n.id = h.owner AND h.lease_until > archivist.clock()
    WHERE h.key > $1 COLLATE \"C\" ORDER BY h.key LIMIT $2"
);

impl Work<'_> {
    pub(super) async fn hosts(&self, filter: &Filter) -> Answer<Vec<Host>> {
        let after = filter.after_host.as_deref().unwrap_or_default();
        let values: Values<'_> = &[&after, &i64::from(filter.limit), &OPEN_MAX];
        self.documents(HOSTS, values, host).await
    }
}

fn host(row: &Row) -> Host {
    let node: Option<String> = row.get(2);
    Host {
        name: row.get(0),
        pages: 0,
        uses: Default::default(),
        used_at: None,
        last_result: 0,
        delay_ms: count(row, 1),
        asked: None,
        open: Some(count(row, 4)),
        leased_until: time(row, 3).filter(|_| node.is_some()),
        node,
    }
}
