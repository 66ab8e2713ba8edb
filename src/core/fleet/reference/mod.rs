//! The protocol as values, for tests alone: the database ([`ledger`]), and what a node keeps of the
//! fleet ([`Desk`]). The product has both as rows, which the tests compare with this.

mod desk;
mod lease;
pub mod ledger;
mod outbox;
mod recall;

pub use desk::{Desk, DeskPage, PagePlace, Room, Stop};
pub use lease::Standing;
pub use outbox::Outbox;
pub use recall::Recall;
