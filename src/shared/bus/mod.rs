//! The D-Bus interfaces of archivist: names, documents, service and client.

pub mod call;
pub mod callers;
pub mod client;
pub mod documents;
pub mod list;
pub mod service;
pub mod socket;
pub mod wire;
