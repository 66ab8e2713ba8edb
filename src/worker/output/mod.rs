//! What a hook says and leaves behind. All of it is hostile input.

pub mod claims;
pub mod growth;
pub mod read;
pub mod room;
pub mod said;
pub mod stdout;
