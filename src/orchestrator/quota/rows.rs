//! The bytes that the archive, the pages with a tag, and those of a user have. Triggers of the database keep the
//! sums, because adding up all results takes too long.

use crate::database::clock::latest;
use crate::database::rows::complete::SAVED;
use crate::database::{Result, Tx};
use archivist_core::model::{SnapshotId, Time};
use archivist_core::plan::QuotaRound;

/// Place of a scope whose pages were all looked at.
const AT_THE_END: i64 = i64::MAX;
/// A place is this times the number of the round, and the page up to which it looked.
const ROUND: i64 = 1 << 60;

/// How far a quota has looked for pages to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QuotaPlace {
    /// Which pages it looks for.
    pub round: QuotaRound,
    /// The page after which it looks.
    pub after: i64,
}

/// Pages that share a quota, as rows name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stored {
    All,
    /// Pages with this tag, or of crawls with it.
    Tag(String),
    User(u32),
}

impl Tx<'_> {
    /// Returns the row of a scope; `None` if no page of it has ever had a file.
    fn scope(&self, of: &Stored) -> Result<Option<String>> {
        match of {
            Stored::All => Ok(Some("all".to_owned())),
            Stored::User(user) => Ok(Some(format!("u{user}"))),
            Stored::Tag(name) => self.first("SELECT 't' || id FROM tag WHERE name = ?1", [name]),
        }
    }

    /// Returns the bytes of the files of pages and crawls.
    pub fn stored(&self, of: &Stored) -> Result<u64> {
        let Some(scope) = self.scope(of)? else {
            return Ok(0);
        };
        let bytes = self.first("SELECT bytes FROM stored WHERE scope = ?1", [scope])?;
        Ok(bytes.unwrap_or(0))
    }

    /// Returns the users with more bytes than this.
    pub fn users_with_more_than(&self, bytes: u64) -> Result<Vec<u32>> {
        self.all(
            "SELECT CAST(substr(scope, 2) AS INTEGER) FROM stored
             WHERE scope >= 'u' AND scope < 'v' AND bytes > ?1",
            [i64::try_from(bytes).unwrap_or(i64::MAX)],
        )
    }

    /// Returns where a quota looks for pages to delete; `None` if none can be deleted until something changes.
    pub fn quota_place(&self, of: &Stored) -> Result<Option<QuotaPlace>> {
        let Some(scope) = self.scope(of)? else {
            return Ok(None);
        };
        let place: Option<i64> =
            self.first("SELECT looked_to FROM stored WHERE scope = ?1", [scope])?;
        let place = place.filter(|place| *place != AT_THE_END);
        Ok(place.and_then(|place| {
            let round = QuotaRound::ALL.get(usize::try_from(place / ROUND).ok()?);
            Some(QuotaPlace { round: *round?, after: place % ROUND })
        }))
    }

    /// Returns the pages after a place, up to the page `to`, that its round deletes.
    pub fn quota_pages(&self, place: QuotaPlace, to: i64, now: Time) -> Result<Vec<SnapshotId>> {
        let condition = match place.round {
            QuotaRound::Unsaved => format!("NOT ({SAVED})"),
            QuotaRound::Replaced => format!(
                "{SAVED} AND EXISTS (SELECT 1 FROM snapshot AS newer
                     WHERE newer.url_key = s.url_key AND (newer.visited_at, newer.id) > (s.visited_at, s.id)
                         AND newer.status = 'sealed' AND newer.unsaved IS NULL
                         AND newer.doubt = 0 AND newer.created_at <= ?3)"
            ),
            QuotaRound::Newest => SAVED.to_owned(),
        };
        self.all(
            &format!(
                "SELECT id FROM snapshot AS s WHERE id > ?1 AND id <= ?2 AND ?3 IS NOT NULL
                     AND status IN ('sealed', 'cancelled') AND {condition} ORDER BY id"
            ),
            (place.after, to, latest(now).0),
        )
    }

    /// Records where a quota looks next; `None` if it has looked at all pages.
    pub fn set_quota_place(&self, of: &Stored, place: Option<QuotaPlace>) -> Result<()> {
        let place = place.map(|place| place.round as i64 * ROUND + place.after);
        let place = place.unwrap_or(AT_THE_END);
        self.execute("UPDATE stored SET looked_to = ?2 WHERE scope = ?1", (self.scope(of)?, place))
    }

    pub fn is_stored_in(&self, page: SnapshotId, of: &Stored) -> Result<bool> {
        match of {
            Stored::All => Ok(true),
            Stored::Tag(name) => self.one(
                "SELECT EXISTS (SELECT 1 FROM tag WHERE name = ?2 AND (
                     id IN (SELECT tag_id FROM snapshot_tag WHERE snapshot_id = ?1)
                     OR id IN (SELECT tag_id FROM crawl_tag JOIN snapshot
                         ON snapshot.id = ?1 AND crawl_tag.crawl_id = snapshot.crawl_id)))",
                (page.0, name),
            ),
            Stored::User(user) => self.one(
                "SELECT EXISTS (SELECT 1 FROM snapshot JOIN crawl ON crawl.id = crawl_id, json_each(users)
                 WHERE snapshot.id = ?1 AND value = ?2)",
                (page.0, *user),
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::database::{Database, NewCrawl, NewSnapshot};
    use archivist_core::model::{CrawlId, Time};
    use proptest::prelude::*;

    /// The sums of the triggers, and those over all rows.
    fn sums(tx: &Tx<'_>) -> [Vec<(String, i64)>; 2] {
        [
            "SELECT scope, bytes FROM stored WHERE bytes <> 0 ORDER BY scope",
            "SELECT scope, sum(size) FROM (
                 SELECT 'all' AS scope, id, size FROM result
                 UNION SELECT 't' || tag_id, id, size FROM result JOIN crawl_tag USING (crawl_id)
                 UNION SELECT 't' || tag_id, id, size FROM result JOIN snapshot_tag USING (snapshot_id)
                 UNION SELECT 'u' || value, result.id, size
                     FROM result JOIN crawl ON crawl.id = crawl_id, json_each(users))
             GROUP BY scope HAVING sum(size) <> 0 ORDER BY scope",
        ]
        .map(|sql| tx.all(sql, []).unwrap())
    }

    fn step(tx: &Tx<'_>, (kind, crawl, page, n): (u8, i64, i64, i64)) {
        let page = (crawl - 1) * 2 + page;
        let name = ["a", "b"][(n % 2) as usize];
        let done = match kind {
            0 => tx.execute(
                "INSERT INTO result (owner, crawl_id, snapshot_id, plugin, hook, status, size)
                 SELECT 's' || id, crawl_id, id, 'p', ?2, 'succeeded', ?2 FROM snapshot WHERE id = ?1
                 ON CONFLICT DO UPDATE SET size = size + 5",
                (page, n),
            ),
            1 => tx.execute("UPDATE result SET size = ?2 WHERE snapshot_id = ?1", (page, n)),
            2 => tx.delete_snapshot(SnapshotId(page), Time(0)),
            3 => tx.one("SELECT EXISTS (SELECT 1 FROM snapshot WHERE id = ?1)", [page]).and_then(|is_there| {
                if is_there { tx.tag_snapshot(SnapshotId(page), name).map(drop) } else { Ok(()) }
            }),
            4 => tx.tag_crawl(CrawlId(crawl), name),
            5 => tx.execute(
                "DELETE FROM crawl_tag WHERE crawl_id = ?1 AND tag_id IN (SELECT id FROM tag WHERE name = ?2)",
                (crawl, name),
            ),
            6 => tx.execute(
                "DELETE FROM snapshot_tag WHERE snapshot_id = ?1 AND tag_id IN (SELECT id FROM tag WHERE name = ?2)",
                (page, name),
            ),
            _ => tx.execute(
                "UPDATE crawl SET users = '[' || ?2 || ']' WHERE id = ?1",
                (crawl, n),
            ),
        };
        done.unwrap();
    }

    proptest! {
        #[test]
        fn sums_follow_all_changes(
            steps in proptest::collection::vec((0..8u8, 1..3i64, 1..3i64, 0..4i64), 1..40)
        ) {
            let directory = tempfile::tempdir().unwrap();
            let mut database = Database::open(&directory.path().join("db")).unwrap();
            database.take_over("unit", "boot", Time(0)).unwrap();
            let tx = database.begin().unwrap();
            for _ in 0..2 {
                let crawl = tx.add_crawl(&NewCrawl {
                    url: "https://a.test/",
                    max_depth: 0,
                    plugins: &[],
                    config: &Default::default(),
                    user: 0,
                    now: Time(0),
                });
                let page = |url| NewSnapshot {
                    url,
                    host: "a.test",
                    ..NewSnapshot::default()
                };
                let pages = [page("https://a.test/1"), page("https://a.test/2")];
                tx.add_snapshots(crawl.unwrap(), None, &pages, Time(0)).unwrap();
            }
            for step in steps {
                self::step(&tx, step);
                let [kept, added_up] = sums(&tx);
                prop_assert_eq!(kept, added_up, "{:?}", step);
            }
        }
    }
}
