//! The programs that plugins need: which there are, which are missing, and their installation.

pub mod install;
pub mod missing;

use crate::client::exit::Failure;
use crate::client::paging::Source;
use crate::client::server::Server;
use archivist_shared::bus::documents::report::{Binary, Filter};

/// Name of the list of programs.
pub const LIST: &str = "binaries";

/// Returns the programs that plugins need.
pub async fn fetch(server: &Server) -> Result<Vec<Binary>, Failure> {
    Source::Machine(server).list(LIST, &Filter::default()).await
}
