//! The table of kinds of units. A new kind is a line here, the file of its implementation, and a
//! drop-in for its units.

use crate::deletion::Removal;
use crate::indexing::Indexing;
use crate::search::Search;
use crate::transfer::Transfer;
use crate::units::{Kind, Kinds};
use crate::verification::Verification;
use crate::watch::Check;
use crate::work::{CrawlWorker, Entries, Hook, SnapshotWorker};
use archivist_core::model::Pool;
use archivist_core::unit::UnitKind;

pub(crate) const KINDS: Kinds = Kinds { all: &UnitKind::ALL, of };

fn of(kind: UnitKind) -> &'static dyn Kind {
    match kind {
        UnitKind::CrawlWorker => &CrawlWorker,
        UnitKind::SnapshotWorker => &SnapshotWorker,
        UnitKind::Hook => &Hook,
        UnitKind::Check => &Check(&[Pool::Fast, Pool::Slow]),
        UnitKind::Alert => &Check(&[Pool::Alerts]),
        UnitKind::Store => &Transfer,
        UnitKind::Delete => &Removal,
        UnitKind::Index => &Indexing,
        UnitKind::Search => &Search,
        UnitKind::Entries => &Entries,
        UnitKind::Verify => &Verification,
    }
}
