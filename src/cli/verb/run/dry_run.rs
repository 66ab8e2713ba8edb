//! `archivist run --dry-run`: the hooks that would run in order, and those that would not with the
//! reason.

use super::RunArgs;
use crate::client::exit::{Exit, Failure};
use crate::client::server::{Server, decode};
use crate::display::style::{self, Style, Tone};
use crate::display::table::{Cell, Table};
use crate::display::text;
use crate::queue::encode;
use archivist_config::Scope;
use archivist_core::text::{clean, human_span};
use archivist_shared::bus::documents::report::{Draft, DraftHook};
use std::collections::BTreeMap;
use std::time::Duration;

/// Prints the draft of the crawl that `args` describe.
pub async fn run(args: &RunArgs, scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let options = encode(&args.options())?;
    let answer = server.call(|| server.proxy().draft(&options)).await?;
    if args.json {
        style::print_json(&answer)?;
        return Ok(Exit::Done);
    }
    let draft: Draft = decode(&answer)?;
    style::print(&summary(&draft, &Style::of_stdout()))?;
    Ok(Exit::Done)
}

fn summary(draft: &Draft, style: &Style) -> String {
    let mut table = Table::new("WHEN  HOOK…  MODE  LIMIT");
    let parts: [(&str, &[DraftHook]); 3] =
        [("before", &draft.setup), ("each page", &draft.page), ("after", &draft.end)];
    for (when, hooks) in parts {
        for hook in hooks {
            let limit = human_span(Duration::from_secs(hook.limit));
            table.row([
                when.into(),
                text::hook_label(&hook.plugin, &hook.hook).into(),
                hook.mode.as_str().into(),
                limit.into(),
            ]);
        }
    }
    let mut out =
        if table.is_empty() { "no hook would run\n".to_owned() } else { table.render(style) };
    let mut reasons: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    for skip in &draft.skipped {
        let plugins = reasons.entry(&skip.why).or_default();
        plugins.push(clean(&skip.plugin));
    }
    if !reasons.is_empty() {
        out.push('\n');
        let mut table = Table::new("NOT RUN…  WHY…");
        for (why, plugins) in reasons {
            table.row([plugins.join(", ").into(), Cell::toned(why, Tone::Dim)]);
        }
        out.push_str(&table.render(style));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::NOW;
    use archivist_shared::bus::documents::report::DraftSkip;

    #[test]
    fn hooks_in_their_order_and_reasons_together() {
        let hook = |plugin: &str| DraftHook {
            plugin: plugin.into(),
            hook: format!("on_Snapshot__06_{plugin}"),
            mode: "foreground".into(),
            limit: 30,
        };
        let skip = |plugin: &str| DraftSkip {
            plugin: plugin.into(),
            why: "not selected".into(),
            program: None,
        };
        let draft = Draft {
            page: vec![hook("wget"), hook("pdf")],
            skipped: vec![skip("a"), skip("b")],
            ..Draft::default()
        };
        assert_eq!(
            summary(&draft, &Style::plain(NOW)),
            "WHEN       HOOK  MODE        LIMIT\n\
             each page  wget  foreground  30s\n\
             each page  pdf   foreground  30s\n\
             \n\
             NOT RUN  WHY\n\
             a, b     not selected\n"
        );
    }
}
