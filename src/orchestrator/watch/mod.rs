//! Watches: checks of sites, their history, and alerts when a site goes down or comes back. The tables of the
//! house name this room (`house.rs`, `kinds.rs`, `service/connection.rs`), and no other room does.

mod answers;
mod bus;
mod declared;
mod files;
mod health;
mod orders;
mod rows;
mod unit;
mod why;

#[cfg(test)]
pub(crate) mod tests;

pub(crate) use answers::{metrics, status};
pub(crate) use bus::WatchesBus;
pub(crate) use unit::Check;
pub(crate) use why::why_run;
