//! Checks of watched sites and their alerts.

pub mod alerts;
pub mod checks;
pub mod files;
pub mod watches;
