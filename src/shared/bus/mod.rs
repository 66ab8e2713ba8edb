//! The D-Bus interfaces of archivist: names, documents, callers and client.

pub mod callers;
pub mod client;
pub mod documents;
pub mod signals;
pub mod socket;
pub mod wire;
