//! The client of systemd, over its D-Bus interface (org.freedesktop.systemd1(5)). [`SystemdClient`]
//! has the connection and the calls that several programs make, [`Manager`] those of the
//! orchestrator.

mod activation;
mod client;
mod encode;
mod error;
mod hint_listener;
mod hint_queue;
mod jobs;
mod journal_sync;
mod log_field_files;
mod manager;
mod property_reader;
mod reading;
mod runner_units;
mod scope;
mod signals;
mod time_server;
mod unit_list;

pub use activation::{activate, has_failed};
pub use client::{Guard, SystemdClient, Whom};
pub use encode::encode;
pub use error::{ErrorKind, ManagerError};
pub use hint_queue::Hint;
pub use hint_queue::HintQueue;
pub use jobs::{Job, Properties, UndoneJob};
pub use journal_sync::synchronize_journal;
pub use manager::{Manager, Release};
pub use runner_units::{Restarting, kill_all, restarting};
pub use scope::enter_scope;
pub use time_server::is_clock_synchronized;
pub use unit_list::LoadedUnit;
