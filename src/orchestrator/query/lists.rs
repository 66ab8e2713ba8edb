//! Lists of rows, as documents.

use crate::main_loop::turn::{Turn, TurnResult, invalid};
use crate::programs;
use crate::query::steps;
use archivist_core::model::{Lifecycle, ResultState};
use archivist_shared::bus::documents::report::Filter;

pub(crate) fn list(turn: &Turn<'_>, what: &str, filter: &Filter) -> TurnResult<String> {
    let known: Vec<&str> = match what {
        "crawls" => Lifecycle::ALL.iter().map(|state| state.as_str()).collect(),
        "snapshots" | "versions" => Lifecycle::ALL
            .iter()
            .map(|state| state.as_str())
            .chain(["incomplete", "partial", "unsaved"])
            .collect(),
        "results" => ResultState::ALL.iter().map(|state| state.as_str()).collect(),
        "runs" => vec!["starting", "running", "ended", "open"],
        "binaries" | "hosts" | "tags" | "timeline" => Vec::new(),
        _ => {
            return Err(invalid(format!(
                "invalid list '{what}': expected crawls, snapshots, versions, results, runs, hosts, tags, timeline or binaries"
            )));
        }
    };
    if let Some(status) = &filter.status
        && !known.contains(&status.as_str())
    {
        let known = known.join(", ");
        return Err(invalid(format!(
            "invalid status '{status}' of {what}: expected one of {known}"
        )));
    }
    let are_pages = matches!(what, "snapshots" | "versions");
    if filter.http.is_some() && !are_pages {
        return Err(invalid(format!("{what} have no HTTP status")));
    }
    let by_page = [&filter.tag, &filter.exact_url, &filter.url_prefix];
    let is_by_page = by_page.into_iter().any(Option::is_some) || filter.url.is_some();
    if is_by_page && !are_pages {
        return Err(invalid(format!("{what} are not listed by tag or URL")));
    }
    if what == "tags" && filter.owner.is_some() {
        return Err(invalid("the tags of one crawl or page are in the answer of Show"));
    }
    let filter = filter.piece();
    Ok(match what {
        "crawls" => serde_json::to_string(&turn.tx.list_crawls(&filter)?)?,
        "snapshots" => serde_json::to_string(&steps::snapshots(turn, &filter)?)?,
        "versions" => serde_json::to_string(&turn.tx.list_versions(&filter)?)?,
        "binaries" => serde_json::to_string(&programs::binaries(turn)?)?,
        "results" => serde_json::to_string(&turn.tx.list_results(&filter)?)?,
        "hosts" => serde_json::to_string(&turn.tx.list_hosts(&filter)?)?,
        "tags" => serde_json::to_string(&turn.tx.list_tags(&filter)?)?,
        "timeline" => serde_json::to_string(&turn.tx.list_spans(&filter)?)?,
        _ => serde_json::to_string(&turn.tx.list_runs(&filter)?)?,
    })
}
