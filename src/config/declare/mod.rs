//! Declarations of pools and watches (`NAME.pool`, `NAME.watch`): finding, reading and validating
//! them.

pub mod declaration;
pub mod files;
pub mod reader;
pub mod url_file;
pub mod watch;

pub use declaration::{Declaration, Kind, NAME_ALLOWED};
pub use reader::Reader;
