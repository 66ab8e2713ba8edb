//! Our own face on the bus: the names, what travels, the service and the client.

pub mod call;
pub mod callers;
pub mod client;
pub mod documents;
pub mod list;
pub mod service;
pub mod socket;
pub mod wire;
