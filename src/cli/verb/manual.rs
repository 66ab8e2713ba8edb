//! `archivist manual`: pages of the manual and the installed configuration. The build of the
//! package runs it, as it runs `archivist completions`.

use crate::client::exit::{Exit, Failure};
use crate::display::style;
use crate::manual;
use clap::{Args, Command};
use std::path::{Path, PathBuf};

/// The descriptions of the interfaces, in the directory of the source.
const INTERFACES: &str = "packaging/tree/usr/share/dbus-1/interfaces";

/// Print a page of the manual with the options, keys and defaults of this program
///
/// The build of the package runs it for each page, and for the configuration that it installs.
#[derive(Args)]
pub struct ManualArgs {
    /// A page of man/ in the source, or the configuration to install
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

pub fn run(args: &ManualArgs, line: &Command) -> Result<Exit, Failure> {
    let name = args.file.display();
    let template = std::fs::read_to_string(&args.file)
        .map_err(|error| Failure::failed(format!("failed to read '{name}': {error}")))?;
    let page = manual::page(&template, line, Path::new(INTERFACES))
        .map_err(|error| Failure::failed(format!("{name}: {error}")))?;
    style::print(&page)?;
    Ok(Exit::Done)
}
