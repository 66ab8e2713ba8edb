//! Results of one crawl or page that have the same state for the same reason, such as all hooks of a
//! page that the browser did not load: one line for people, who read the reason once. Documents keep
//! every result.

use super::HookResult;
use archivist_core::model::{Owner, ResultState};
use archivist_core::text::hook_label;

/// Two or more results without files that differ in their hooks alone.
#[derive(Debug, PartialEq, Eq)]
pub struct Alike<'a> {
    /// Their crawl or page.
    pub owner: Owner,
    /// Their state.
    pub status: ResultState,
    /// Their reason.
    pub reason: &'a str,
    /// Their hooks, in the order of the results.
    pub hooks: Vec<String>,
}

impl<'a> Alike<'a> {
    fn of(result: &'a HookResult) -> Option<Alike<'a>> {
        let reason = result.error.as_deref().filter(|_| result.files.is_empty())?;
        Some(Alike { owner: result.owner, status: result.status, reason, hooks: Vec::new() })
    }

    fn has(&self, result: &HookResult) -> bool {
        let (owner, status) = (result.owner, result.status);
        (owner, status, result.error.as_deref(), result.files.is_empty())
            == (self.owner, self.status, Some(self.reason), true)
    }

    /// Returns `9 hooks skipped: wget, pdf, …: failed to load the page`, without the reason if it is
    /// that of the page, which is printed. `of` follows the hooks.
    pub fn text(&self, of: &str, reason_of_page: Option<&str>) -> String {
        let (count, names) = (self.hooks.len(), self.hooks.join(", "));
        let text = format!("{count} hooks{of} {}: {names}", self.status);
        if reason_of_page == Some(self.reason) { text } else { format!("{text}: {}", self.reason) }
    }
}

/// Returns the results that differ from all others, and those that do not, summed up; both in the order
/// of the results.
pub fn sum_up(results: &[HookResult]) -> (Vec<&HookResult>, Vec<Alike<'_>>) {
    let mut sums: Vec<Alike<'_>> = Vec::new();
    for result in results {
        let known = sums.iter().position(|sum| sum.has(result));
        let Some(of) = Alike::of(result) else { continue };
        let at = known.unwrap_or_else(|| {
            sums.push(of);
            sums.len() - 1
        });
        sums[at].hooks.push(hook_label(&result.plugin, &result.hook));
    }
    sums.retain(|sum| sum.hooks.len() > 1);
    let is_alone = |result: &&HookResult| !sums.iter().any(|sum| sum.has(result));
    (results.iter().filter(is_alone).collect(), sums)
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::SnapshotId;

    fn result(page: i64, plugin: &str, status: ResultState, error: Option<&str>) -> HookResult {
        HookResult {
            id: None,
            owner: Owner::Snapshot(SnapshotId(page)),
            plugin: plugin.into(),
            hook: format!("on_Snapshot__50_{plugin}"),
            status,
            output: None,
            error: error.map(str::to_owned),
            files: Vec::new(),
            size: 0,
            attempts: 1,
            started_at: None,
            ended_at: None,
            figures: Default::default(),
        }
    }

    #[test]
    fn results_with_the_same_reason_are_one_line() {
        use ResultState::{Failed, Skipped, Succeeded};
        let why = Some("no answer");
        let results = [
            result(3, "chromium", Failed, why),
            result(3, "wget", Skipped, why),
            result(3, "hashes", Succeeded, None),
            result(3, "media", Skipped, Some("no media")),
            result(3, "pdf", Skipped, why),
            result(4, "pdf", Skipped, why),
            result(3, "title", Succeeded, None),
        ];
        let (alone, sums) = sum_up(&results);
        let alone: Vec<&str> = alone.iter().map(|result| result.plugin.as_str()).collect();
        assert_eq!(alone, ["chromium", "hashes", "media", "pdf", "title"]);
        let texts: Vec<String> = sums.iter().map(|sum| sum.text(" of s3", None)).collect();
        assert_eq!(texts, ["2 hooks of s3 skipped: wget, pdf: no answer"]);
        assert_eq!(sums[0].text("", why), "2 hooks skipped: wget, pdf");
    }
}
