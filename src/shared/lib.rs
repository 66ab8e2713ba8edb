//! Code that several programs share: the D-Bus interfaces of archivist, the client of systemd,
//! configuration, declarations of pools and watches, alerts, free disk space, the highest ids of an
//! archive, its installation, the state of the database's file, and logging.

pub mod alert;
pub mod archive;
pub mod bus;
pub mod config;
mod connection;
pub mod database;
pub mod declare;
pub mod disk;
pub mod id_marks;
pub mod installation;
pub mod journal;
pub mod outage;
pub mod systemd;
