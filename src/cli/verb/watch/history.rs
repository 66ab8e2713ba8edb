//! `archivist watch history`: results of checks as a table, as JSON or as a picture.

use super::plot;
use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use crate::display::text;
use archivist_config::Scope;
use archivist_core::model::{CheckKind, RunId};
use archivist_shared::bus::documents::watches::{Check, HistoryFilter};
use archivist_shared::bus::wire::WatchesProxy;
use clap::Args;
use std::path::PathBuf;

/// Show the newest results of a watch, or draw them
#[derive(Args)]
pub struct HistoryArgs {
    /// Name of the watch
    #[arg(value_name = "NAME", value_parser = super::name)]
    name: String,
    /// List only checks of this kind
    #[arg(long, value_name = "KIND", value_parser = super::kind)]
    kind: Option<CheckKind>,
    /// List only checks of this URL
    #[arg(long, value_name = "URL")]
    url: Option<String>,
    /// List the newest N; 0 lists all
    #[arg(short = 'n', long, value_name = "N", default_value_t = 50)]
    limit: u32,
    /// Print JSON, with headers and findings
    #[arg(long)]
    json: bool,
    /// Draw response time and state of all stored status checks as SVG into FILE; - prints it
    #[arg(long, value_name = "FILE", conflicts_with_all = ["json", "kind"])]
    plot: Option<PathBuf>,
}

/// Most checks in one answer over the bus; fewer with findings, which may be long.
const AT_ONCE: u32 = 1000;
const AT_ONCE_FULL: u32 = 50;

/// Queries the checks of a watch by `filter`, newest first, in batches.
pub async fn fetch(
    server: &Server,
    name: &str,
    filter: HistoryFilter,
) -> Result<Vec<Check>, Failure> {
    fetch_down_to(server, name, filter, RunId(0)).await
}

/// Same, up to the batch that contains `last`.
pub async fn fetch_down_to(
    server: &Server,
    name: &str,
    mut filter: HistoryFilter,
    last: RunId,
) -> Result<Vec<Check>, Failure> {
    let mut left = match filter.limit {
        0 => usize::MAX,
        limit => limit as usize,
    };
    let at_once = if filter.full { AT_ONCE_FULL } else { AT_ONCE };
    let mut checks: Vec<Check> = Vec::new();
    while left > 0 {
        filter.limit = u32::try_from(left).unwrap_or(at_once).min(at_once);
        let document = serde_json::to_string(&filter).unwrap_or_default();
        let piece: Vec<Check> = server
            .ask(|| async {
                server.feature::<WatchesProxy<'_>>().await?.history(name, &document).await
            })
            .await?;
        let is_last = piece.len() < filter.limit as usize;
        left = left.saturating_sub(piece.len());
        filter.before = piece.last().map(|check| check.id);
        checks.extend(piece);
        if is_last || filter.before.is_none_or(|before| before <= last) {
            break;
        }
    }
    Ok(checks)
}

pub async fn run(args: HistoryArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let url = args.url.as_deref().map(|url| {
        archivist_core::model::PageUrl::parse(url)
            .map_or_else(|_| url.to_owned(), |url| url.as_str().to_owned())
    });
    let mut filter =
        HistoryFilter { kind: args.kind, url, limit: args.limit, before: None, full: args.json };
    let Some(file) = &args.plot else {
        let checks = fetch(&server, &args.name, filter).await?;
        print(&checks, args.json)?;
        return Ok(Exit::Done);
    };
    (filter.kind, filter.limit) = (Some(CheckKind::Status), 0);
    let mut checks = fetch(&server, &args.name, filter).await?;
    checks.reverse();
    let picture = plot::draw(&args.name, &checks, &Style::of_stdout().zone);
    if file.as_os_str() == "-" {
        style::print(&picture)?;
        return Ok(Exit::Done);
    }
    std::fs::write(file, picture).map_err(|error| {
        Failure::failed(format!("failed to write '{}': {error}", file.display()))
    })?;
    Ok(Exit::Done)
}

pub fn print(checks: &[Check], json: bool) -> Result<(), Failure> {
    if json {
        let text = serde_json::to_string(checks).unwrap_or_default();
        return style::print_json(&text);
    }
    if checks.is_empty() {
        eprintln!("no results");
        return Ok(());
    }
    let style = Style::of_stdout();
    style::print(&table(checks, &style).render(&style))
}

pub fn result(check: &Check) -> Cell {
    let record = &check.record;
    let mut words = Vec::new();
    words.extend(record.status_code.map(|code| code.to_string()));
    if check.ok == Some(true) || record.error.is_none() {
        words.extend(record.response_ms.map(|ms| format!("{ms} ms")));
    }
    for (name, score) in &record.scores {
        let score = score.map_or("?".to_owned(), |score| format!("{score:.0}"));
        words.push(format!("{name} {score}"));
    }
    words.extend(record.pages.map(|count| match count {
        1 => "1 page".to_owned(),
        _ => format!("{count} pages"),
    }));
    words.extend(record.crawl.map(|crawl| crawl.to_string()));
    words.extend(record.error.clone());
    words.extend(record.warning.clone());
    let tone = match check.ok {
        Some(true) if record.warning.is_some() => Tone::Busy,
        Some(true) => Tone::Good,
        Some(false) => Tone::Bad,
        None => Tone::Dim,
    };
    if words.is_empty() && check.ok == Some(true) {
        Cell::toned("done", tone)
    } else {
        Cell::toned(words.join(" "), tone)
    }
}

fn table(checks: &[Check], style: &Style) -> Table {
    let mut table = Table::new("ID  KIND  STATE  RESULT…  TIME?  WHEN  URL…");
    for check in checks {
        let state = match (check.state.as_str(), check.ok) {
            ("ended", Some(true)) => Cell::toned("ok", Tone::Good),
            ("ended", Some(false)) => Cell::toned("failed", Tone::Bad),
            ("ended", None) => Cell::toned("unknown", Tone::Dim),
            (state, _) => Cell::toned(state, Tone::Busy),
        };
        table.row([
            check.id.to_string().into(),
            check.kind.as_str().into(),
            state,
            result(check),
            text::elapsed(check.started_at, check.ended_at, style.now).into(),
            text::when(check.ended_at.or(Some(check.queued_at)), style).into(),
            check.url.as_str().into(),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::{CheckRecord, RunId, Time};

    #[test]
    fn a_result_in_a_line() {
        let check = Check {
            id: RunId(12),
            watch: "site".into(),
            kind: CheckKind::Status,
            url: "http://a.example/".into(),
            state: "ended".into(),
            queued_at: Time(0),
            started_at: Some(Time(1000)),
            ended_at: Some(Time(2500)),
            unit: None,
            outcome: None,
            ok: Some(false),
            record: CheckRecord {
                status_code: Some(526),
                response_ms: Some(10_000),
                error: Some("a bad\u{1b}[31m certificate".into()),
                ..CheckRecord::default()
            },
        };
        let style = Style::plain(Time(5000));
        let warned = Check {
            ok: Some(true),
            record: CheckRecord {
                status_code: Some(200),
                response_ms: Some(7),
                warning: Some("the certificate expires in 2 days".into()),
                ..CheckRecord::default()
            },
            ..check.clone()
        };
        let text = table(&[warned], &style).render(&style);
        assert!(text.contains("200 7 ms the certificate expires in 2 days"), "{text}");
        assert_eq!(
            table(&[check], &style).render(&style),
            "ID   KIND    STATE   RESULT                      TIME  WHEN                      URL\n\
             r12  status  failed  526 a bad\u{fffd}[31m certificate  1.5s  1970-01-01T00:00:02.500Z  http://a.example/\n"
        );
    }
}
