//! `archivist generate`: the units that archivist-generator makes from declarations.

use crate::client::exit::{Exit, Failure};
use crate::display::style;
use archivist_config::Scope;
use archivist_generator as generate;
use archivist_generator::{Content, Generated};
use clap::Args;
use std::path::PathBuf;

/// Show the units that archivist-generator makes from pools and watches
///
/// These are the units that it generates at boot and at 'systemctl daemon-reload' from the
/// declarations of pools and watches (see archivist.pool(5) and archivist.watch(5)), or from FILE
/// and its drop-ins alone, and the errors in them.
#[derive(Args)]
pub struct GenerateArgs {
    /// Print the units
    #[arg(long, required_unless_present = "output")]
    dry_run: bool,
    /// Write the units into DIR
    #[arg(long, value_name = "DIR", conflicts_with = "dry_run")]
    output: Option<PathBuf>,
    /// Read only this declaration, with the drop-ins next to it
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

pub fn run(args: GenerateArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut generated = generate::dry_run(scope, args.file.as_deref());
    match &args.output {
        Some(directory) => {
            let failed = generate::write::units(&generated.units, directory);
            generated.problems.extend(failed);
        }
        None => style::print(&shown(&generated))?,
    }
    for problem in &generated.problems {
        eprintln!("archivist: {problem}");
    }
    if generated.is_good() { Ok(Exit::Done) } else { Ok(Exit::Failed) }
}

/// Returns all files, each under its name.
fn shown(generated: &Generated) -> String {
    let mut text = String::new();
    for (name, content) in &generated.units.files {
        match content {
            Content::Text(unit) => text.push_str(&format!("--- {name}\n{unit}\n")),
            Content::Link(target) => text.push_str(&format!("--- {name} -> {target}\n\n")),
        }
    }
    text
}
