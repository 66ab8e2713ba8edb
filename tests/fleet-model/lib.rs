//! The protocol of a fleet as values, for tests alone: the database ([`ledger`]), and what a node keeps
//! of the fleet ([`Desk`]). The product has both as rows, which its tests compare with this. Here, they
//! run with faults (`simulation/`).

mod desk;
mod lease;
pub mod ledger;
mod outbox;
mod recall;

#[cfg(test)]
mod simulation;

pub use desk::{Desk, DeskPage, PagePlace, Room, Stop};
pub use lease::{NodeLease, Standing};
pub use outbox::Outbox;
pub use recall::Recall;
