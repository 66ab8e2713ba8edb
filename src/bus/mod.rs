//! Our own face on the bus: the names, what travels, the service and the client.

pub mod bounds;
pub mod call;
pub mod callers;
pub mod client;
pub mod list;
pub mod record;
pub mod report;
pub mod service;
pub mod socket;
pub mod watches;
pub mod wire;
pub mod work;
