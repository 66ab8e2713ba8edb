//! The D-Bus interfaces of archivist: names, documents, service and client.

pub mod announcer;
pub mod call;
pub mod callers;
pub mod client;
pub mod documents;
pub mod list;
pub mod service;
pub mod signals;
pub mod socket;
pub mod subscribers;
pub mod wire;
