//! Checks of watched sites and their alerts.

pub mod alerts;
pub mod checks;
pub mod files;
pub mod watches;

pub(crate) use checks::Check;

pub(crate) use alerts::{crawl_sealed, crawls_are_over};
pub(crate) use checks::{begin_check, prune_checks};
pub(crate) use watches::watches;
