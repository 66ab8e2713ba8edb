//! HTTP client of the checks, which accepts what browsers accept: a check calls a site down
//! only if a browser does.
//!
//! A library that follows the RFCs refuses answers that every browser shows: names of headers with
//! spaces, lines without a colon, control characters, certificates of authorities as certificates
//! of servers. libcurl refuses some of them, too (lines without a colon since 8, lines of more than
//! 100 KiB), and would add 30 libraries to the start of each hook, as hooks and checks are one
//! program. This client reads answers by the rules of Chromium; rustls makes connections. It asks by
//! HTTP/1.1, and by the crate h2 only servers that refuse that (`http2.rs`). Hooks use
//! curl(1) nevertheless, because the contract of plugins promises its options (`hooks/source/fetch.rs`).

mod answer;
mod channel;
mod client;
mod connection;
mod cookies;
mod decode;
mod fault;
mod framing;
mod head;
mod http2;
mod identity;
mod issuer;
mod request;
mod trust;

pub use answer::CheckAnswer;
pub use client::{Client, Patience, USER_AGENT, Wanted};
pub use fault::Fault;
pub use identity::{DEMAND, Identity};
pub use request::Ask;
