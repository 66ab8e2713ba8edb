//! Transfers between the archive and its store: the program of `archivist-store-….service`. It knows
//! one snapshot, its directory and the store, and neither database nor bus. For `archivist`, it compares
//! copies with what their rows say ([`compare`]), and restores a page of another node ([`foreign`]).

pub mod backend;
pub mod compare;
pub mod digest;
pub mod failure;
pub mod foreign;
pub mod marker;
mod marks;
pub mod pack;
pub mod task;
pub mod unpack;
