//! The table of kinds of units. A new kind is a line here, the file of its implementation, and a
//! drop-in for its units.

use crate::units::Kinds;
use archivist_core::unit::UnitKind;

pub(crate) const KINDS: Kinds = Kinds(&[
    (UnitKind::CrawlWorker, &crate::work::CrawlWorker),
    (UnitKind::SnapshotWorker, &crate::work::SnapshotWorker),
    (UnitKind::Hook, &crate::work::Hook),
    #[cfg(feature = "watches")]
    (UnitKind::Check, &crate::watch::Check),
    (UnitKind::Alert, &crate::alert::AlertUnit),
    #[cfg(feature = "store")]
    (UnitKind::Store, &crate::transfer::Transfer),
    (UnitKind::Delete, &crate::deletion::Removal),
    #[cfg(feature = "search")]
    (UnitKind::Index, &crate::indexing::Indexing),
    #[cfg(feature = "search")]
    (UnitKind::Search, &crate::search::Search),
    (UnitKind::Entries, &crate::work::Entries),
    #[cfg(feature = "verification")]
    (UnitKind::Verify, &crate::verification::Verification),
]);
