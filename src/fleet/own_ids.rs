//! Ids of what a machine archived before it joins a fleet. They stay as they are, because the paths
//! of the archive contain them: the ids of a fleet begin after those of the machine that made it.

use crate::connect::{Link, Problem};
use std::fmt;

const BEGIN: &str = "
    UPDATE archivist.fleet SET next_crawl = $1::bigint + 1, first_crawl = $1::bigint + 1, first_page = $2::bigint + 1";
const BEGIN_PAGES: &str =
    "SELECT setval(pg_get_serial_sequence('archivist.page', 'id'), $1::bigint + 1, false)";

/// The first ids of the fleet, and whether the newest crawl and page of a machine are of the fleet.
const COMPARE: &str = "
    SELECT first_crawl, first_page,
        EXISTS (SELECT FROM archivist.crawl WHERE id = $1) AND EXISTS (SELECT FROM archivist.page WHERE id = $2)
    FROM archivist.fleet";

/// The highest ids of a machine; 0 without any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnIds {
    pub crawl: i64,
    pub page: i64,
}

/// A machine cannot join with what it archived.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overlap {
    own: OwnIds,
    first: OwnIds,
}

impl fmt::Display for Overlap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Overlap { own, first } = self;
        write!(
            f,
            "this machine has crawls up to c{} and pages up to s{}, and the ids of the fleet begin at c{} and s{}: \
             make the fleet on the machine with the highest ids, or join with an empty data directory",
            own.crawl, own.page, first.crawl, first.page
        )
    }
}

/// Makes the ids of a new fleet begin after those of a machine.
///
/// # Errors
/// If the database cannot be reached.
pub async fn begin_after(link: &mut Link, own: OwnIds) -> Result<(), Problem> {
    let done = async {
        let work = link.client.transaction().await?;
        work.execute(BEGIN, &[&own.crawl, &own.page]).await?;
        work.execute(BEGIN_PAGES, &[&own.page]).await?;
        work.commit().await
    };
    let done = done.await;
    done.map_err(|error| link.problem(&error))
}

/// Returns why a machine cannot join with what it archived; `None` if no id of it can be one of the
/// fleet, or if it was a node of this fleet before.
///
/// # Errors
/// If the database cannot be reached.
pub async fn overlap(link: &Link, own: OwnIds) -> Result<Option<Overlap>, Problem> {
    let row = link.client.query_one(COMPARE, &[&own.crawl, &own.page]).await;
    let row = row.map_err(|error| link.problem(&error))?;
    let first = OwnIds { crawl: row.get(0), page: row.get(1) };
    let is_below = own.crawl < first.crawl && own.page < first.page;
    let fits = is_below || row.get(2);
    Ok((!fits).then_some(Overlap { own, first }))
}
