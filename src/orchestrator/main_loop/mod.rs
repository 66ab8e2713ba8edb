//! The loop: events in, one transaction for a batch of them, actions out.

pub mod access;
pub mod action;
pub mod bus_context;
pub mod due;
pub mod effects;
pub mod event;
pub mod live;
pub mod measure;
pub mod order;
pub mod perform;
pub mod prepare;
pub mod replies;
pub mod rooms;
pub mod rows;
pub mod saved;
pub mod starts;
pub mod transaction;
pub mod turn;
pub mod wait;

pub(crate) use rows::{
    allowance, crawl_directory, crawl_for, crawl_of, crawl_of_owner, directory, has_lost,
    has_lost_directory, host_view, keep_local, leases, result_state, snapshot_of,
};
