//! `archivist check KIND [URL]`: one check of one site, as watches run it: request on standard
//! input, record on standard output.

use crate::client::exit::{Exit, Failure};
use crate::display::style;
use crate::machine::browser;
use archivist_checks as check;
use archivist_checks::{CheckResult, Kind, Request};
use archivist_config as config;
use archivist_config::Scope;
use archivist_core::model::Reach;
use archivist_core::model::web::reach::Hosts;
use archivist_core::text::clean;
use clap::{Args, ValueEnum};
use std::io::{IsTerminal, Read};

/// Longest request, in bytes.
const REQUEST: u64 = 1 << 20;

/// Environment variable in which the orchestrator passes what a check may reach.
const REACH: &str = "ARCHIVIST_REACH";

/// Run one check of one site (what watches run)
///
/// See archivist-orchestrator.service(8).
#[derive(Args)]
pub struct CheckArgs {
    kind: KindArg,
    /// URL to check; without it, a request {"url":…, "settings":{…}} is read from standard input
    url: Option<String>,
    /// Print the record as JSON on a terminal too
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum KindArg {
    Status,
    Crawl,
    Lighthouse,
}

impl From<KindArg> for Kind {
    fn from(kind: KindArg) -> Kind {
        match kind {
            KindArg::Status => Kind::Status,
            KindArg::Crawl => Kind::Crawl,
            KindArg::Lighthouse => Kind::Lighthouse,
        }
    }
}

pub fn run(args: CheckArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut request = match &args.url {
        Some(url) => Request::of(url)
            .map_err(|error| Failure::usage(format!("'{}': {error}", clean(url))))?,
        None => read()?,
    };
    let library = scope.data_dir().join("lib");
    request.settings.lib_dir.get_or_insert(library);
    if matches!(args.kind, KindArg::Lighthouse) && request.settings.chromium.is_none() {
        // A check runs as a user of its own, which finds the programs of the library, too.
        request.settings.chromium = browser::path(&browser::settings(scope, true)?);
    }
    request.settings.reach = reach(request.url.as_str(), scope)?;
    let result = check::run(args.kind.into(), &request);
    if args.json || !std::io::stdout().is_terminal() {
        style::print(&format!("{}\n", result.line()))?
    } else {
        style::print(&words(&result))?
    }
    // A request on standard input gets its answer from the record; a user in a shell from the exit
    // status.
    if result.ok || args.url.is_none() { Ok(Exit::Done) } else { Ok(Exit::Failed) }
}

/// Returns what the check may reach: as the orchestrator says, otherwise by the configuration and
/// the URL.
fn reach(url: &str, scope: &Scope) -> Result<Reach, Failure> {
    if let Ok(said) = std::env::var(REACH) {
        let bad = || Failure::usage(format!("{REACH}='{}' is invalid", clean(&said)));
        return Reach::parse(&said).ok_or_else(bad);
    }
    let (settings, _) = config::load(scope).map_err(|error| Failure::failed(error.to_string()))?;
    let content = std::fs::read(scope.rooted("/etc/hosts")).unwrap_or_default();
    let hosts = Hosts::parse(&String::from_utf8_lossy(&content));
    Ok(settings.reach.and(&Reach::of_url(url, &hosts, &[])))
}

fn read() -> Result<Request, Failure> {
    let mut text = Vec::new();
    let input = std::io::stdin();
    if input.is_terminal() {
        let message =
            "no URL, and standard input is a terminal; try: archivist check status https://…";
        return Err(Failure::usage(message));
    }
    let read = input.take(REQUEST).read_to_end(&mut text);
    read.map_err(|error| Failure::failed(format!("failed to read the request: {error}")))?;
    Request::parse(&text).map_err(|error| {
        Failure::usage(format!("failed to parse the request on standard input: {error}"))
    })
}

/// Returns the record as text.
fn words(result: &CheckResult) -> String {
    let mut text = format!("{}: {}\n", clean(&result.url), verdict(result));
    let mut line = |name: &str, value: String| text.push_str(&format!("  {name}: {value}\n"));
    if let Some(url) = &result.final_url {
        line("leads to", clean(url));
    }
    if let Some(days) = result.certificate_days {
        line("days until the certificate expires", days.to_string());
    }
    if let Some(warning) = &result.warning {
        line("warning", clean(warning));
    }
    if let Some(scores) = &result.scores {
        let all = [
            ("performance", scores.performance),
            ("accessibility", scores.accessibility),
            ("best practices", scores.best_practices),
            ("seo", scores.seo),
        ];
        for (name, score) in all {
            line(name, score.map_or("–".to_owned(), |score| format!("{score:.0}")));
        }
    }
    if let Some(pages) = result.pages {
        line("pages", pages.to_string());
    }
    for finding in &result.findings {
        let parts: Vec<_> = [
            (!finding.text.is_empty()).then(|| clean(&finding.text)),
            finding.on.as_ref().map(|page| format!("(on {})", clean(page))),
        ]
        .into_iter()
        .flatten()
        .collect();
        let value = format!("{} {}", clean(&finding.url), parts.join(" "));
        line(&clean(&finding.kind), value.trim_end().to_owned());
    }
    if result.findings_left_out > 0 {
        line("and more", result.findings_left_out.to_string());
    }
    text
}

fn verdict(result: &CheckResult) -> String {
    let numbers = match (result.status_code, result.response_ms) {
        (Some(status), Some(ms)) => format!("{status} in {ms} ms"),
        (Some(status), None) => status.to_string(),
        _ => String::new(),
    };
    let word = match (result.ok, result.skipped) {
        (true, _) if result.partial => "partly read",
        (true, _) => "ok",
        (false, true) => "not checked",
        (false, false) => "failed",
    };
    let parts: Vec<_> =
        [word.to_owned(), numbers, result.error.as_deref().map(clean).unwrap_or_default()]
            .into_iter()
            .filter(|part| !part.is_empty())
            .collect();
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_record_has_no_control_characters() {
        let line = r#"{"type":"CheckResult","kind":"crawl","url":"https://a.test/","ok":true,"partial":true,"status_code":200,
            "response_ms":12,"pages":3,"error":"ended after 1 s","findings":[
            {"kind":"broken-link","url":"https://a.test/\u001b[2Jx","on":"https://a.test/","text":"the server answers 404"},
            {"kind":"missing-title","url":"https://a.test/b"}]}"#;
        let text = words(&serde_json::from_str(line).unwrap());
        assert_eq!(
            text,
            "https://a.test/: partly read, 200 in 12 ms, ended after 1 s\n  pages: 3\n  \
             broken-link: https://a.test/\u{fffd}[2Jx the server answers 404 (on https://a.test/)\n  \
             missing-title: https://a.test/b\n"
        );
    }
}
