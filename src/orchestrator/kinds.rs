//! The table of kinds of units. A new kind is a line here, the file of its implementation, and a
//! drop-in for its units.

use crate::units::Kinds;
use archivist_core::unit::UnitKind;

pub(crate) const KINDS: Kinds = Kinds(&[
    (UnitKind::CrawlWorker, &crate::work::CrawlWorker),
    (UnitKind::SnapshotWorker, &crate::work::SnapshotWorker),
    (UnitKind::Hook, &crate::work::Hook),
    (UnitKind::Check, &crate::watch::Check),
    (UnitKind::Alert, &crate::alert::AlertUnit),
    (UnitKind::Store, &crate::transfer::Transfer),
    (UnitKind::Delete, &crate::deletion::Removal),
    (UnitKind::Index, &crate::indexing::Indexing),
    (UnitKind::Search, &crate::search::Search),
    (UnitKind::Entries, &crate::work::Entries),
    (UnitKind::Verify, &crate::verification::Verification),
]);
