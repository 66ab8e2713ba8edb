//! Code that several programs share: the D-Bus interfaces of archivist, the client of systemd,
//! configuration, declarations of pools and watches, free disk space, and logging.

pub mod bus;
pub mod config;
mod connection;
pub mod declare;
pub mod disk;
pub mod journal;
pub mod systemd;
