//! `archivist list`: crawls, snapshots, results or runs, newest first.

use crate::client::exit::{Exit, Failure};
use crate::client::pieces::{Pieces, Row};
use crate::client::server::{Server, decode};
use crate::display::look;
use crate::display::look::Look;
use crate::display::rows;
use crate::display::table::Table;
use crate::display::text;
use archivist_core::model::Owner;
use archivist_shared::bus::documents::report::{Filter, HookResult};
use archivist_shared::config::Scope;
use clap::{Args, ValueEnum};

#[derive(Args)]
pub struct ListArgs {
    /// What to list
    #[arg(value_enum)]
    what: What,
    /// Only what belongs to this crawl (c12) or snapshot (s345)
    #[arg(value_name = "ID")]
    owner: Option<Owner>,
    /// Only what is in this state, such as failed
    #[arg(long, value_name = "S")]
    status: Option<String>,
    /// At most so many; 0 for all
    #[arg(long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum What {
    Crawls,
    Snapshots,
    Results,
    Runs,
}

impl What {
    fn as_str(self) -> &'static str {
        match self {
            What::Crawls => "crawls",
            What::Snapshots => "snapshots",
            What::Results => "results",
            What::Runs => "runs",
        }
    }

    fn states(self) -> Vec<&'static str> {
        match self {
            What::Crawls | What::Snapshots => text::lifecycles().to_vec(),
            What::Results => text::result_states().to_vec(),
            What::Runs => vec!["starting", "running", "ended"],
        }
    }
}

pub async fn run(args: ListArgs, scope: &Scope) -> Result<Exit, Failure> {
    if let Some(status) = &args.status {
        check_status(args.what, status)?;
    }
    let filter = Filter {
        status: args.status.clone(),
        owner: args.owner,
        limit: args.limit,
        ..Filter::default()
    };
    let server = Server::reach(scope).await?;
    let pieces = Pieces::new(&server, filter);
    let look = Look::of_stdout();
    match args.what {
        What::Crawls => list(&args, pieces, &look, rows::crawls).await,
        What::Snapshots => list(&args, pieces, &look, rows::snapshots).await,
        What::Results => {
            let table = |results: &[HookResult], look: &Look| rows::results(results, look, true);
            list(&args, pieces, &look, table).await
        }
        What::Runs => list(&args, pieces, &look, rows::runs).await,
    }
}

async fn list<T: Row>(
    args: &ListArgs,
    pieces: Pieces<'_>,
    look: &Look,
    table: impl Fn(&[T], &Look) -> Table,
) -> Result<Exit, Failure> {
    if args.json {
        return print_documents::<T>(pieces).await;
    }
    let table = table(&pieces.collect().await?, look);
    if table.is_empty() {
        eprintln!("no {}", args.what.as_str());
        return Ok(Exit::Done);
    }
    look::print(&table.render(look))?;
    if args.limit > 0 && table.len() >= args.limit as usize {
        eprintln!("the newest {}; --limit 0 shows all", args.limit);
    }
    Ok(Exit::Done)
}

/// One array, written as its pieces come.
async fn print_documents<T: Row>(mut pieces: Pieces<'_>) -> Result<Exit, Failure> {
    let mut before = "[\n";
    loop {
        let piece = pieces.next::<T>().await?;
        if piece.documents.is_empty() {
            break;
        }
        let mut text = String::new();
        for document in piece.documents {
            let value: serde_json::Value = decode(document.get())?;
            text += before;
            text += &indent(&format!("{value:#}"));
            before = ",\n";
        }
        look::print_document(&text)?;
    }
    look::print(match before {
        "[\n" => "[]\n",
        _ => "\n]\n",
    })?;
    Ok(Exit::Done)
}

fn indent(text: &str) -> String {
    let lines: Vec<String> = text.lines().map(|line| format!("  {line}")).collect();
    lines.join("\n")
}

fn check_status(what: What, status: &str) -> Result<(), Failure> {
    let states = what.states();
    if states.contains(&status) {
        Ok(())
    } else {
        Err(Failure::usage(format!(
            "'{status}' is not a state of {}; there are {}",
            what.as_str(),
            states.join(", ")
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_stand_in_their_array_as_the_printer_of_one_document_puts_them() {
        let rows = serde_json::json!([{"id": "c1", "tags": ["a"]}, {"id": "c2", "tags": []}]);
        let one = |row: &serde_json::Value| indent(&format!("{row:#}"));
        let array = format!("[\n{},\n{}\n]", one(&rows[0]), one(&rows[1]));
        assert_eq!(array, format!("{rows:#}"));
    }

    #[test]
    fn states_are_checked_before_anybody_is_asked() {
        let error = check_status(What::Crawls, "failed").unwrap_err();
        assert_eq!(error.exit(), Exit::Usage);
        assert_eq!(
            error.message(),
            "'failed' is not a state of crawls; there are queued, started, sealed, paused, cancelled"
        );
        assert!(check_status(What::Results, "failed").is_ok());
        assert!(check_status(What::Runs, "running").is_ok());
    }
}
