//! Makes documents of the bus from rows of the store. Documents are for users: they have no user
//! names and passwords in URLs, and no secret settings.

use crate::store::{
    BinaryRow, CheckEntry, CheckFilter, CrawlEntry, HostEntry, ListFilter, ResultRow,
};
use crate::store::{RunEntry, SnapshotEntry, SpanEntry, SpanPageEntry};
use archivist_core::model::{CheckRecord, Uses, shown_setting, without_userinfo};
use archivist_shared::bus::documents::report;
use archivist_shared::bus::documents::watches::{Check, HistoryFilter};
use std::collections::BTreeMap;

/// Makes documents of rows.
pub fn documents<D: From<R>, R>(rows: Vec<R>) -> Vec<D> {
    rows.into_iter().map(D::from).collect()
}

impl From<&report::Filter> for ListFilter {
    /// A limited list is for an answer over the bus and ends at [`report::ANSWER_BYTES`]; an
    /// unlimited one is for the orchestrator itself.
    fn from(filter: &report::Filter) -> ListFilter {
        ListFilter {
            status: filter.status.clone(),
            owner: filter.owner,
            http: filter.http,
            limit: filter.limit,
            before: filter.before,
            after: filter.after,
            bytes_max: if filter.limit == 0 {
                usize::MAX
            } else {
                report::ANSWER_BYTES
            },
        }
    }
}

impl From<&HistoryFilter> for CheckFilter {
    fn from(filter: &HistoryFilter) -> CheckFilter {
        CheckFilter {
            kind: filter.kind,
            url: filter.url.clone(),
            limit: filter.limit,
            before: filter.before,
        }
    }
}

/// Returns settings without secrets.
fn shown_settings(config: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let shown = config.into_iter().map(|(name, value)| {
        let value = shown_setting(&name, &value);
        (name, value)
    });
    shown.collect()
}

impl From<CrawlEntry> for report::Crawl {
    fn from(row: CrawlEntry) -> report::Crawl {
        report::Crawl {
            id: row.id,
            status: row.status,
            reason: row.reason,
            url: without_userinfo(&row.url),
            max_depth: row.max_depth,
            tags: row.tags,
            plugins: row.plugins,
            config: shown_settings(row.config),
            created_at: row.created_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            retry_at: row.retry_at,
            attempts: row.attempts,
            snapshots: row.snapshots,
            incomplete: row.incomplete,
            uses: Uses::of_results(&row.results),
            results: row.results,
            directory: row.directory,
            nodes: Vec::new(),
        }
    }
}

impl From<SnapshotEntry> for report::Snapshot {
    fn from(row: SnapshotEntry) -> report::Snapshot {
        report::Snapshot {
            id: row.id,
            crawl: row.crawl,
            url: without_userinfo(&row.url),
            title: row.title,
            depth: row.depth,
            parent: row.parent,
            status: row.status,
            reason: row.reason,
            tags: row.tags,
            bookmarked_at: row.bookmarked_at,
            created_at: row.created_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            retry_at: row.retry_at,
            attempts: row.attempts,
            uses: Uses::of_results(&row.results),
            results: row.results,
            directory: row.directory,
            current_step: None,
            http_status: row.http_status,
            config: shown_settings(row.config),
            node: None,
            older_copies: Vec::new(),
        }
    }
}

impl From<ResultRow> for report::HookResult {
    fn from(row: ResultRow) -> report::HookResult {
        report::HookResult {
            id: Some(row.id),
            owner: row.owner,
            plugin: row.plugin,
            hook: row.hook,
            status: row.status,
            output: row.output,
            error: row.error,
            files: row.files,
            size: row.size,
            attempts: row.attempts,
            started_at: row.started_at,
            ended_at: row.ended_at,
        }
    }
}

impl From<RunEntry> for report::Run {
    fn from(row: RunEntry) -> report::Run {
        report::Run {
            id: row.id,
            unit: row.unit,
            kind: row.kind.as_str().to_owned(),
            owner: row.owner,
            plugin: row.plugin,
            hook: row.hook,
            attempt: row.attempt,
            status: row.status.as_str().to_owned(),
            outcome: row.outcome,
            invocation: row.invocation,
            started_at: row.started_at,
            ended_at: row.ended_at,
            argv: row.argv.iter().map(|text| without_userinfo(text)).collect(),
            parent: row.parent,
            directory: row.directory,
            limit: row.limit.map(|limit| limit.as_secs()),
            environment: Default::default(),
            accounting: row.accounting,
        }
    }
}

impl From<SpanEntry> for report::Span {
    fn from(row: SpanEntry) -> report::Span {
        report::Span {
            id: row.id,
            unit: row.unit,
            kind: row.kind.as_str().to_owned(),
            owner: row.owner,
            plugin: row.plugin,
            hook: row.hook,
            attempt: row.attempt,
            status: row.status.as_str().to_owned(),
            outcome: row.outcome,
            verdict: row.verdict,
            recorded_at: Some(row.recorded_at),
            started_at: row.started_at,
            ready_at: row.ready_at,
            ended_at: row.ended_at,
            cpu_usec: row.cpu_usec,
            memory_peak: row.memory_peak,
            page: row.page.map(report::SpanPage::from),
        }
    }
}

impl From<SpanPageEntry> for report::SpanPage {
    fn from(row: SpanPageEntry) -> report::SpanPage {
        report::SpanPage {
            url: without_userinfo(&row.url),
            title: row.title,
            depth: row.depth,
            created_at: row.created_at,
        }
    }
}

impl From<BinaryRow> for report::Binary {
    /// What is known of the program alone; the caller adds the plugins that require it.
    fn from(row: BinaryRow) -> report::Binary {
        report::Binary {
            name: row.name,
            abspath: Some(row.abspath),
            version: row.version,
            sha256: row.sha256,
            provider: Some(row.provider),
            env: row.env,
            found_at: Some(row.found_at),
            ..report::Binary::default()
        }
    }
}

impl From<HostEntry> for report::Host {
    fn from(row: HostEntry) -> report::Host {
        report::Host {
            name: row.name,
            pages: row.pages,
            uses: row.uses,
            used_at: row.used_at,
            last_result: row.last_result,
            delay_ms: row.delay_ms,
            asked: row.asked,
            open: None,
            node: None,
            leased_until: None,
        }
    }
}

impl From<CheckEntry> for Check {
    fn from(row: CheckEntry) -> Check {
        Check {
            id: row.id,
            watch: row.watch,
            kind: row.kind,
            url: without_userinfo(&row.url),
            state: row.status.as_str().to_owned(),
            queued_at: row.queued_at,
            started_at: row.started_at,
            ended_at: row.ended_at,
            unit: row.unit,
            outcome: row.outcome,
            ok: row.ok,
            record: row.record,
        }
    }
}

/// Returns a check without findings and headers, which may be long.
pub fn without_details(check: CheckEntry) -> Check {
    let record = CheckRecord {
        findings: Vec::new(),
        headers: Default::default(),
        ..check.record
    };
    Check::from(CheckEntry { record, ..check })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::RunState;
    use archivist_core::model::{Accounting, CrawlId, Lifecycle, Owner, RunId, Time};
    use archivist_core::unit::UnitKind;

    #[test]
    fn crawl_document_has_no_secrets() {
        let row = CrawlEntry {
            id: CrawlId(1),
            status: Lifecycle::Queued,
            reason: None,
            url: "https://user:secret@a.example/".into(),
            max_depth: 0,
            tags: Vec::new(),
            plugins: Vec::new(),
            config: [("API_KEY", "secret"), ("TIMEOUT", "30")]
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .into(),
            created_at: Time(0),
            started_at: None,
            ended_at: None,
            retry_at: None,
            attempts: 0,
            snapshots: Default::default(),
            incomplete: 0,
            results: Default::default(),
            directory: None,
        };
        let document = serde_json::to_string(&report::Crawl::from(row)).unwrap();
        assert!(!document.contains("secret"), "{document}");
        assert!(document.contains("https://a.example/"), "{document}");
        assert!(document.contains(r#""TIMEOUT":"30""#), "{document}");
    }

    #[test]
    fn run_document_names_states_and_hides_passwords() {
        let row = RunEntry {
            id: RunId(1),
            unit: "archivist-hook-wget-s1.service".into(),
            kind: UnitKind::Hook,
            owner: Owner::Crawl(CrawlId(1)),
            plugin: None,
            hook: None,
            attempt: 1,
            status: RunState::Starting,
            outcome: None,
            invocation: None,
            started_at: None,
            ended_at: None,
            argv: vec!["wget".into(), "https://user:secret@a.example/".into()],
            accounting: Accounting::default(),
            parent: None,
            directory: None,
            limit: None,
        };
        let document = report::Run::from(row);
        assert_eq!((&*document.kind, &*document.status), ("hook", "starting"));
        assert_eq!(document.argv, ["wget", "https://a.example/"]);
    }
}
