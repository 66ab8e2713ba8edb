//! The HTML page about one snapshot: its facts, its screenshot, and the result of every hook.

use super::frame::document_with_strip;
use super::versions::{directory_of, links_of, list_of};
use super::{href, text};
use archivist_core::model::{CrawlId, Figures, RECORDER, ResultState, SnapshotId, Time};
use archivist_core::model::{Unsaved, VERIFIER, is_http_error, recording_text, replay_text};
use archivist_core::store::{PICTURES, SMALL_PICTURE};
use archivist_core::text::{clean_to, human_size};
use archivist_shared::bus::documents::report::{Alike, File, HookResult, sum_up};
use maud::{Markup, html};

/// Number of files of a result that are shown. The others are in a collapsed element.
const FILES_SHOWN: usize = 8;
const TEXT_MAX_CHARS: usize = 500;
/// Plugins whose main file shows the page, the best one first, and what it is. The HTML that the browser saved
/// is none: its addresses are those of the live site.
const VIEWS: [(&str, &str); 5] = [
    ("standalone", "Page without scripts"),
    ("screenshot", "Screenshot"),
    ("pdf", "PDF"),
    ("text", "Text"),
    ("singlefile", "SingleFile"),
];
/// Longest reason or output in characters.
const REASON_MAX_CHARS: usize = 2000;

#[derive(Clone, Debug)]
pub struct SnapshotPage {
    pub id: SnapshotId,
    pub url: String,
    pub title: Option<String>,
    pub crawl: Option<CrawlId>,
    pub depth: u32,
    pub tags: Vec<String>,
    pub added_at: Option<Time>,
    /// When it ended.
    pub archived_at: Time,
    pub visited_at: Time,
    pub http_status: Option<u16>,
    /// Why it is not a saved page.
    pub unsaved: Option<Unsaved>,
    /// Results in display order.
    pub results: Vec<HookResult>,
    /// Directories of the snapshot and of its crawl relative to the archive's directory, for links
    /// to the lists.
    pub directory: Option<String>,
    pub crawl_directory: Option<String>,
}

/// Whether a page can show the file as an image. The file name is sufficient, because browsers run
/// nothing in an `img`.
fn is_image(file: &File) -> bool {
    ["image/png", "image/jpeg", "image/webp"].contains(&file.mimetype.as_str())
}

fn rank(state: ResultState) -> u8 {
    match state {
        ResultState::Succeeded => 0,
        ResultState::Failed => 1,
        ResultState::Started | ResultState::Queued | ResultState::Backoff => 2,
        ResultState::NoResults => 3,
        ResultState::Skipped => 4,
    }
}

fn word(state: ResultState) -> &'static str {
    match state {
        ResultState::NoResults => "nothing found",
        other => other.as_str(),
    }
}

/// A coloured label of a state.
fn pill(state: ResultState) -> Markup {
    html! { span class={ "pill " (state.as_str()) } { (word(state)) } }
}

impl SnapshotPage {
    pub fn count(&self, state: ResultState) -> usize {
        self.results.iter().filter(|result| result.status == state).count()
    }

    /// Results whose files lack parts of the page.
    pub fn lacking(&self) -> impl Iterator<Item = &HookResult> {
        self.results.iter().filter(|result| result.lacks_parts())
    }

    /// Figures of a hook of the plugin that succeeded.
    fn figures(&self, plugin: &str) -> Option<&Figures> {
        let succeeded = self
            .results
            .iter()
            .find(|result| result.plugin == plugin && result.status == ResultState::Succeeded);
        succeeded.map(|result| &result.figures)
    }

    /// The title, or the URL if the title is empty.
    fn name(&self) -> String {
        let title = self.title.as_deref().unwrap_or_default();
        match clean_to(title, TEXT_MAX_CHARS) {
            empty if empty.is_empty() => clean_to(&self.url, TEXT_MAX_CHARS),
            title => title,
        }
    }

    /// What shows the page, the best one first: what it is, and the link to its file.
    fn views(&self) -> Vec<(&'static str, String)> {
        let view = |(plugin, name)| {
            let own = |result: &&HookResult| {
                result.plugin == plugin && result.status == ResultState::Succeeded
            };
            let result = self.results.iter().rfind(own)?;
            let file = main_file(result).or(result.files.first())?;
            Some((name, href::relative(0, &format!("{plugin}/{}", file.path))?))
        };
        VIEWS.into_iter().filter_map(view).collect()
    }

    /// Path of the small picture in the snapshot's directory, or that of the screenshot if there is
    /// none.
    pub fn thumbnail(&self) -> Option<String> {
        let of_plugin = |result: &&HookResult| {
            result.plugin == PICTURES && result.status == ResultState::Succeeded
        };
        let result = self.results.iter().rfind(of_plugin)?;
        let pictures = || result.files.iter().filter(|file| is_image(file));
        let named = |start: &str| pictures().find(|file| file.path.starts_with(start));
        let file =
            named(SMALL_PICTURE).or_else(|| named("screenshot.")).or_else(|| pictures().next())?;
        Some(format!("{}/{}", result.plugin, file.path))
    }

    pub fn render(&self) -> String {
        let (mut alone, mut sums) = sum_up(&self.results);
        let place = |plugin: &str| VIEWS.iter().position(|(view, _)| *view == plugin);
        alone.sort_by_key(|result| {
            (rank(result.status), place(&result.plugin).unwrap_or(VIEWS.len()))
        });
        sums.sort_by_key(|sum| rank(sum.status));
        let small = self.thumbnail().and_then(|path| href::relative(0, &path));
        let views = self.views();
        let body = html! {
            (self.crumbs())
            main {
                header class="head" {
                    h1 { bdi { (self.name()) } }
                    p class="url" { (self.address()) }
                    @if let Some(links) = self.links() {
                        object class="versions" type="text/html" data=(links) aria-label="Older and newer snapshots" {}
                    }
                }
                @if !views.is_empty() {
                    p class="views" {
                        @for (name, link) in &views { a href=(link) rel="noopener" { (name) } }
                    }
                }
                div class={ "hero" @if small.is_none() { " bare" } } {
                    @if let Some(((name, link), small)) = views.first().zip(small) {
                        a class="shot" href=(link) rel="noopener" title=(name) {
                            img src=(small) alt="Screenshot of the page";
                        }
                    }
                    (self.facts())
                }
                section {
                    h2 { "Results" }
                    @for result in alone { (self.result(result)) }
                    @for sum in &sums { (together(sum)) }
                    @if self.results.is_empty() { p class="dim" { "No hook ran for this page." } }
                }
            }
            footer {
                p {
                    "The page without scripts loads nothing from the web. Other saved pages are unchanged: their "
                    "scripts run in your browser."
                }
            }
        };
        document_with_strip(&self.name(), body)
    }

    /// Links to the lists. They are valid within the archive; a snapshot elsewhere has none.
    fn crumbs(&self) -> Markup {
        let Some(directory) = &self.directory else {
            return html! {};
        };
        let ups = directory.split('/').count();
        let day = directory.split('/').next().unwrap_or_default();
        let crawl = self.crawl_directory.as_ref().zip(self.crawl);
        html! {
            nav {
                @if let Some(up) = href::relative(ups, "index.html") {
                    a href=(up) rel="up" { "Archive" }
                }
                @if let Some(up) = href::relative(ups, &format!("{day}/index.html")) {
                    a href=(up) rel="up" { (text::day(day)) }
                }
                @if let Some((directory, id)) = crawl
                    && let Some(up) = href::relative(ups, &format!("{directory}/index.html")) {
                    a href=(up) rel="up" { "Crawl " (id) }
                }
                span { (self.id) }
            }
        }
    }

    /// The file with the links to older and newer snapshots, which changes when there are others. A
    /// snapshot elsewhere has none.
    fn links(&self) -> Option<String> {
        let ups = self.directory.as_ref()?.split('/').count();
        let list = directory_of(&list_of(&self.url));
        href::relative(ups, &format!("{list}/{}", links_of(self.id)))
    }

    fn address(&self) -> Markup {
        let shown = clean_to(&self.url, TEXT_MAX_CHARS);
        html! {
            @match href::web(&self.url) {
                Some(url) => a href=(url) rel="noopener noreferrer external" { bdi { (shown) } },
                None => bdi { (shown) },
            }
        }
    }

    fn facts(&self) -> Markup {
        let files: usize = self.results.iter().map(|result| result.files.len()).sum();
        let bytes = self.results.iter().fold(0u64, |sum, result| sum.saturating_add(result.size));
        let states = [
            ResultState::Succeeded,
            ResultState::Failed,
            ResultState::NoResults,
            ResultState::Skipped,
        ];
        html! {
            dl class="facts" {
                div { dt { "Archived" } dd { (text::stamp(self.visited_at)) } }
                @if let Some(status) = self.http_status {
                    div { dt { "HTTP status" } dd class="pills" {
                        @if is_http_error(status) {
                            span class="pill failed" { (status) }
                            " the server sent an error instead of the page"
                        } @else { (status) }
                    } }
                }
                @if let Some(unsaved) = self.unsaved.filter(|unsaved| *unsaved != Unsaved::Error) {
                    div { dt { "Not saved" } dd class="pills" {
                        span class="pill failed" { (unsaved.text()) }
                    } }
                }
                @if self.unsaved.is_none() && self.lacking().next().is_some() {
                    div { dt { "Missing" } dd class="pills" {
                        span class="pill partial" { "parts are missing" }
                        @for result in self.lacking() { " " (clean_to(&result.plugin, 80)) }
                    } }
                }
                @if let Some(text) = self.figures(RECORDER).and_then(recording_text) {
                    div { dt { "Recorded" } dd { (text) } }
                }
                @if let Some(text) = self.figures(VERIFIER).and_then(replay_text) {
                    div { dt { "Replay" } dd { (text) } }
                }
                @if let Some(added) = self.added_at {
                    div { dt { "Added" } dd { (text::stamp(added)) } }
                }
                div { dt { "Saved" } dd { (text::count(files, "file")) ", " (human_size(bytes)) } }
                div { dt { "Results" } dd class="pills" {
                    @for state in states {
                        @let count = self.count(state);
                        @if count > 0 {
                            span class={ "pill " (state.as_str()) } { (count) " " (word(state)) }
                        }
                    }
                } }
                @if self.depth > 0 { div { dt { "Depth" } dd { (self.depth) } } }
                @if !self.tags.is_empty() {
                    div { dt { "Tags" } dd class="pills" {
                        @for tag in &self.tags { span class="tag" { bdi { (clean_to(tag, 60)) } } }
                    } }
                }
            }
        }
    }

    fn result(&self, result: &HookResult) -> Markup {
        let hooks_of_plugin =
            self.results.iter().filter(|other| other.plugin == result.plugin).count();
        let main = main_file(result);
        let mut files: Vec<&File> = result.files.iter().collect();
        files.sort_by_key(|file| Some(*file) != main);
        let (first, rest) = files.split_at(files.len().min(FILES_SHOWN));
        let output = result.output.as_deref().map(str::trim).unwrap_or_default();
        let has_message = !output.is_empty()
            && !is_path_of_a_file(output, result)
            && result.error.as_deref().map(str::trim) != Some(output);
        html! {
            article class=(result.status.as_str()) {
                div class="line" {
                    h3 {
                        (clean_to(&result.plugin, 80))
                        @if hooks_of_plugin > 1 { " " small { (clean_to(&result.hook, 120)) } }
                    }
                    (pill(result.status))
                    span class="meta" {
                        @if result.size > 0 && result.files.len() != 1 { span { (human_size(result.size)) } }
                        @if let Some(took) = text::took(result.started_at, result.ended_at) { span title=[result.started_at.map(|at| format!("Started {at}"))] { (took) } }
                        @if result.attempts > 1 { span { (text::count(result.attempts as usize, "attempt")) } }
                    }
                }
                @if let Some(why) = &result.error {
                    p class="why" { bdi { (clean_to(why, REASON_MAX_CHARS)) } }
                }
                @if has_message { p class="says" { bdi { (clean_to(output, REASON_MAX_CHARS)) } } }
                @if !first.is_empty() { (listing(&result.plugin, first)) }
                @if !rest.is_empty() {
                    details {
                        summary { (text::count(rest.len(), "more file")) }
                        (listing(&result.plugin, rest))
                    }
                }
            }
        }
    }
}

/// Hooks that ended in the same way, without files.
fn together(sum: &Alike<'_>) -> Markup {
    html! {
        article class=(sum.status.as_str()) {
            div class="line" {
                h3 { (clean_to(&sum.hooks.join(", "), REASON_MAX_CHARS)) }
                (pill(sum.status))
            }
            p class="why" { bdi { (clean_to(sum.reason, REASON_MAX_CHARS)) } }
        }
    }
}

/// The main file of a result: the file that the hook names, else the first HTML page.
fn main_file(result: &HookResult) -> Option<&File> {
    let named =
        |file: &&File| result.output.as_deref().is_some_and(|out| is_named(out, result, file));
    let files = || result.files.iter();
    files().find(named).or_else(|| files().find(|file| file.mimetype == "text/html"))
}

fn is_named(output: &str, result: &HookResult, file: &File) -> bool {
    let own = |path: &str| path.strip_prefix(&result.plugin)?.strip_prefix('/').map(str::to_owned);
    output == file.path || own(output).is_some_and(|path| path == file.path)
}

fn is_path_of_a_file(output: &str, result: &HookResult) -> bool {
    result.files.iter().any(|file| is_named(output, result, file))
}

fn listing(plugin: &str, files: &[&File]) -> Markup {
    html! {
        ul class="files" {
            @for file in files {
                li {
                    @let shown = clean_to(&file.path, TEXT_MAX_CHARS);
                    @match href::relative(0, &format!("{plugin}/{}", file.path)) {
                        Some(link) => a href=(link) rel="noopener" { bdi { (shown) } },
                        None => bdi title="Not linked: its name is not UTF-8 or leads out of the directory" { (shown) },
                    }
                    span class="size" { (human_size(file.size)) }
                }
            }
        }
    }
}
