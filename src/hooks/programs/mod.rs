//! The built-in hook programs that save or describe one page.

pub mod dom;
pub mod favicon;
pub mod hashes;
pub mod headers;
pub mod import;
pub mod outlinks;
pub mod pdf;
pub mod screenshot;
pub mod standalone;
pub mod text;
pub mod title;
pub mod verify;
pub mod wacz;
pub mod wget;
