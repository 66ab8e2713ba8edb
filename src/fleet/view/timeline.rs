//! The time line of a crawl: its pages that nodes have or ended, each with its node.

use super::pages::{columns, page, state};
use super::*;
use archivist_shared::bus::documents::report::Snapshot;

pub(super) const TEXTS: &[&str] = &[TIMELINE];

/// Pages of crawl `$1` after page `$2`, the oldest first: ended pages in the order of the index, and
/// open ones by the hosts that nodes lease. Cancelled pages that did not run are left out. The
/// conditions compare rows, because the planner prefers the primary key where it can.
const TIMELINE: &str = concat!(
    "WITH ended AS MATERIALIZED (
        SELECT p.*, p.status AS state FROM unnest('{sealed,cancelled}'::text[]) s (status) CROSS JOIN LATERAL (
            SELECT p.* FROM archivist.page p
            WHERE (p.crawl, p.status, p.id) > ($1, s.status, $2)
                AND (p.crawl, p.status, p.id) <= ($1, s.status, 9223372036854775807)
                AND p.node IS NOT NULL AND (p.status = 'sealed' OR p.took_ms > 0)
            ORDER BY p.crawl, p.status, p.id LIMIT $3) p
    ), held AS MATERIALIZED (
        SELECT p.*, ",
    state!(),
    " AS state
        FROM archivist.host h JOIN archivist.page p ON p.host = h.key AND p.status = 'open'
            AND p.id BETWEEN h.from_page AND h.last_page AND p.node = h.owner AND p.epoch = h.epoch
        JOIN archivist.crawl c ON c.id = p.crawl
        WHERE h.due_at IS NULL AND p.crawl = $1 AND p.id > $2
    ) ",
    columns!(),
    "FROM (SELECT * FROM ended UNION ALL SELECT * FROM held ORDER BY id LIMIT $3) p
    LEFT JOIN archivist.node n ON n.id = p.node
    ORDER BY p.id"
);

impl Work<'_> {
    /// Returns the pages of a crawl that nodes have or ended; of a page, the page if it is one.
    pub(super) async fn timeline(&self, filter: &Filter) -> Answer<Vec<Snapshot>> {
        let after = filter.after_page.unwrap_or(0);
        match filter.owner {
            None => Ok(Vec::new()),
            Some(Owner::Crawl(crawl)) => {
                let values: Values<'_> = &[&crawl.0, &after, &i64::from(filter.limit)];
                self.documents(TIMELINE, values, page).await
            }
            Some(Owner::Snapshot(id)) => {
                let mut pages = self.pages(filter).await?;
                pages.retain(|page| page.node.is_some() && id.0 > after);
                Ok(pages)
            }
        }
    }
}
