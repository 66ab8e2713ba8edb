//! The built-in hook programs that need no browser of their own, or one of Debian's once.

pub mod dom;
pub mod favicon;
pub mod hashes;
pub mod headers;
pub mod outlinks;
pub mod pdf;
pub mod screenshot;
pub mod title;
pub mod wget;
