//! Checks of watched sites and their alerts.

pub mod alerts;
pub mod checks;
pub mod files;
pub mod watches;

pub(crate) use checks::Check;
