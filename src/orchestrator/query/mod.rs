//! Answers questions of users: makes documents of rows, and explains why something waits or failed.

pub mod documents;
pub mod draft;
pub mod lists;
pub mod metrics;
pub mod orders;
pub mod plugins;
pub mod show;
pub mod status;
pub mod steps;
pub mod why;
pub mod why_run;

pub(crate) use draft::draft;
pub(crate) use lists::list;
pub(crate) use metrics::metrics;
pub(crate) use plugins::plugins;
pub(crate) use show::{details, details_of_run};
pub(crate) use status::status;
pub(crate) use why::why;
pub(crate) use why_run::why_run;
