//! Code that several programs share: the D-Bus interfaces of archivist, the client of systemd, free
//! disk space, the highest ids of an archive, its installation, the state of the database's file,
//! which pages were deleted, pages on their way into the archive, readers of foreign files, and logging.

pub mod archive;
pub mod archivebox;
pub mod bus;
pub mod connection;
pub mod database;
pub mod deleted;
pub mod disk;
pub mod id_marks;
pub mod installation;
pub mod journal;
pub mod outage;
pub mod reader;
pub mod staged;
pub mod systemd;
