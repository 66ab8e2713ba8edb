//! Why the orchestrator ends.

use archivist_core::model::Runner;

#[derive(Debug, thiserror::Error)]
pub enum OrchestratorError {
    /// Trying again does not help.
    #[error("{0}")]
    Unusable(String),
    /// The database cannot be used, for this reason, which is logged.
    #[error("the database cannot be used")]
    DatabaseRefused(String),
    /// The same, because the file itself is damaged: no other start helps until it has changed.
    #[error("the database is damaged")]
    DatabaseDamaged(String),
    /// Another reason, as text.
    #[error("{0}")]
    Failed(String),
    /// This runner can write nothing any more.
    #[error("another orchestrator took over ({})", .0.named())]
    Displaced(Box<Runner>),
}
