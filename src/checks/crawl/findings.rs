//! Findings about a site, from the pages that were read; the most severe first.

use super::job::Rules;
use super::page::Page;
use super::site::{Found, Known, Site};
use crate::result::Finding;
use std::collections::BTreeMap;
use std::time::Duration;
use url::Url;

/// Time until the headers after which a page is slow.
const SLOW: Duration = Duration::from_secs(2);
/// Most redirects of a chain that are printed.
const CHAIN: usize = 30;

/// Returns all findings. If `is_whole` is false, the crawl ended early, and nothing is reported as
/// missing.
pub fn of(site: &Site, is_whole: bool) -> Vec<Finding> {
    let mut found = Vec::new();
    broken(site, &mut found);
    redirects(site, &mut found);
    insecure(site, &mut found);
    texts(site, &mut found);
    repeated(site, &mut found);
    weight(site, &mut found);
    maps(site, is_whole && !site.is_cut, &mut found);
    if site.is_cut {
        let text = "the site has more URLs than the limit";
        found.push(Finding::new("limit-reached", url(site, site.start), text));
    }
    found
}

fn url(site: &Site, number: usize) -> &str {
    site.urls[number].url.as_str()
}

/// Returns the pages that search results would show: read, not excluded, and not a copy of another
/// page.
fn pages(site: &Site) -> impl Iterator<Item = (&Known, &Page)> {
    site.urls.iter().filter_map(|known| match &known.answer {
        Some(Found::Page(page, ..)) => Some((known, &**page)),
        _ => None,
    })
}

fn listed(site: &Site) -> impl Iterator<Item = (&Known, &Page)> {
    pages(site).filter(|(known, page)| {
        let is_itself = page.canonical.as_ref().is_none_or(|own| *own == known.url);
        is_itself && !page.no_index
    })
}

/// Returns broken links, once for each page with the link.
fn broken(site: &Site, found: &mut Vec<Finding>) {
    for known in &site.urls {
        let Some(text) = known.answer.as_ref().and_then(trouble) else {
            continue;
        };
        let kind = if site.is_own(&known.url) { "broken-link" } else { "broken-external-link" };
        for page in &known.on {
            found.push(Finding::new(kind, known.url.as_str(), &text).on(url(site, *page)));
        }
        if known.on.is_empty() && known.in_sitemap {
            found.push(Finding::new("broken-in-sitemap", known.url.as_str(), &text));
        }
    }
}

/// Returns why an answer counts as broken. Servers that refuse robots, or all clients for now, have
/// their pages anyway.
fn trouble(answer: &Found) -> Option<String> {
    match answer {
        Found::Fault(fault) => Some(fault.to_string()),
        Found::Status(401 | 403 | 405 | 407 | 429 | 451 | 503 | 999) => None,
        Found::Status(status @ 400..) => Some(format!("the server answers {status}")),
        Found::Redirect(status, None) => Some(format!("{status} without a valid target")),
        _ => None,
    }
}

fn redirects(site: &Site, found: &mut Vec<Finding>) {
    for (number, known) in site.urls.iter().enumerate() {
        let Some(Found::Redirect(_, Some(_))) = known.answer else {
            continue;
        };
        let is_first = number == 0
            || known.in_sitemap
            || known.on.iter().any(|page| !is_redirect(site, *page));
        if !is_first {
            continue;
        }
        let (kind, text) = chain(site, number);
        let pages: Vec<_> = known.on.iter().filter(|page| !is_redirect(site, **page)).collect();
        let finding = Finding::new(kind, known.url.as_str(), &text);
        if pages.is_empty() {
            found.push(finding.clone());
        }
        found.extend(pages.into_iter().map(|page| finding.clone().on(url(site, *page))));
    }
}

fn is_redirect(site: &Site, number: usize) -> bool {
    matches!(site.urls[number].answer, Some(Found::Redirect(..)))
}

/// `301 → https://a.test/x, 302 → https://a.test/y`
fn chain(site: &Site, first: usize) -> (&'static str, String) {
    let (mut at, mut steps, mut seen) = (first, Vec::new(), vec![first]);
    while let Some(Found::Redirect(status, Some(to))) = site.urls[at].answer {
        steps.push(format!("{status} → {}", url(site, to)));
        if seen.contains(&to) || steps.len() >= CHAIN {
            return ("redirect-loop", steps.join(", "));
        }
        seen.push(to);
        at = to;
    }
    let kind = if steps.len() > 1 { "redirect-chain" } else { "redirect" };
    (kind, steps.join(", "))
}

fn insecure(site: &Site, found: &mut Vec<Finding>) {
    for (known, page) in pages(site).filter(|(_, page)| !page.insecure.is_empty()) {
        let text: Vec<_> = page.insecure.iter().map(Url::as_str).collect();
        found.push(Finding::new("mixed-content", known.url.as_str(), &text.join(" ")));
    }
}

fn texts(site: &Site, found: &mut Vec<Finding>) {
    for (known, page) in listed(site) {
        let lacks = [
            (page.title.is_none(), "missing-title"),
            (page.description.is_none(), "missing-description"),
            (!page.has_heading, "missing-heading"),
            (!page.has_language, "missing-language"),
        ];
        for (_, kind) in lacks.into_iter().filter(|(lacks, _)| *lacks) {
            found.push(Finding::new(kind, known.url.as_str(), ""));
        }
        if page.no_alt > 0 {
            let text = format!("{} without a text", counted(page.no_alt, "picture"));
            found.push(Finding::new("missing-alt", known.url.as_str(), &text));
        }
    }
}

/// `1 page`, `2 pages`
fn counted(number: usize, noun: &str) -> String {
    match number {
        1 => format!("1 {noun}"),
        _ => format!("{number} {noun}s"),
    }
}

/// Returns titles and descriptions that several pages share.
fn repeated(site: &Site, found: &mut Vec<Finding>) {
    type Of = fn(&Page) -> Option<&String>;
    let texts: [(&str, Of); 2] = [
        ("duplicate-title", |page| page.title.as_ref()),
        ("duplicate-description", |page| page.description.as_ref()),
    ];
    for (kind, of) in texts {
        let mut by_text: BTreeMap<&str, Vec<&Known>> = BTreeMap::new();
        for (known, page) in listed(site) {
            if let Some(text) = of(page) {
                by_text.entry(text).or_default().push(known);
            }
        }
        for (text, group) in by_text.iter().filter(|(_, group)| group.len() > 1) {
            for known in &group[1..] {
                found.push(Finding::new(kind, known.url.as_str(), text).on(group[0].url.as_str()));
            }
        }
    }
}

fn weight(site: &Site, found: &mut Vec<Finding>) {
    for known in &site.urls {
        let Some(Found::Page(_, after, is_large)) = &known.answer else {
            continue;
        };
        if *after > SLOW {
            let text = format!("{} ms until the headers", after.as_millis());
            found.push(Finding::new("slow-page", known.url.as_str(), &text));
        }
        if *is_large {
            let text =
                "more HTML than 1 MiB or than arrived in time, of which only the start was read";
            found.push(Finding::new("large-page", known.url.as_str(), text));
        }
    }
}

/// Returns findings about robots.txt and sitemaps, and about the pages that they name.
fn maps(site: &Site, is_whole: bool, found: &mut Vec<Finding>) {
    let start = url(site, site.start);
    if let Rules::Unknown(reason) = &site.rules {
        found.push(Finding::new("unreadable-robots", start, reason));
        return;
    }
    for (file, reason) in &site.broken_sitemaps {
        if site.has_sitemap || !file.path().ends_with("/sitemap.xml") {
            found.push(Finding::new("broken-sitemap", file.as_str(), reason));
        }
    }
    if pages(site).next().is_none() || !is_whole {
        return;
    }
    if matches!(site.rules, Rules::None) {
        found.push(Finding::new("missing-robots", start, ""));
    }
    if !site.has_sitemap {
        found.push(Finding::new("missing-sitemap", start, ""));
        return;
    }
    for (known, page) in pages(site).filter(|(known, _)| known.in_sitemap) {
        if page.no_index {
            found.push(Finding::new("noindex-in-sitemap", known.url.as_str(), ""));
        }
        if known.on.is_empty() && known.url != site.urls[site.start].url {
            found.push(Finding::new("orphan-page", known.url.as_str(), "no page links to it"));
        }
    }
    let forbidden =
        |known: &&Known| known.in_sitemap && matches!(known.answer, Some(Found::Forbidden));
    for known in site.urls.iter().filter(forbidden) {
        found.push(Finding::new(
            "forbidden-in-sitemap",
            known.url.as_str(),
            "robots.txt does not permit it",
        ));
    }
    for (known, _) in listed(site).filter(|(known, _)| !known.in_sitemap) {
        found.push(Finding::new("not-in-sitemap", known.url.as_str(), ""));
    }
}
