//! `favicon`: saves the icon that the browser got with the page, else one that the page names, else
//! `/favicon.ico` of its site. Requests no other service.

use crate::page::html;
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::source;
use crate::source::fetch;
use crate::visit;
use std::collections::HashSet;
use std::time::Duration;
use url::Url;

/// Number of the page's icons that are tried.
const PAGE_ICONS_MAX: usize = 4;
/// Bytes of the page that are read: icons are named in its head.
const PAGE_START_BYTES: u64 = 512 * 1024;
/// How long after the page its icon may come: a browser asks for it last.
const ICON_WAIT: Duration = Duration::from_secs(2);

struct Site {
    address: Url,
    /// Icons that the page names.
    named: Vec<Url>,
    /// An icon that the page has in itself.
    own: Option<Vec<u8>>,
    /// The address of what the browser got in place of an icon.
    missing: Option<Url>,
}

/// Takes the icon of the browser, else fetches icons until one of them is an image.
pub fn run(invocation: &Invocation) -> Outcome {
    let url = invocation.web_url()?;
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("looking for an icon");
    let most = invocation.settings.size("FAVICON_MAX_SIZE");
    let site = match visited(invocation, &mut runner, most)? {
        Visit::Icon(found) => return Ok(found),
        Visit::Site(site) => site,
        Visit::None => fetched(invocation, &mut runner, &url)?,
    };
    for icon in candidates(site.named, &site.address) {
        if site.missing.as_ref() == Some(&icon) {
            continue;
        }
        let within = runner.remaining();
        let Ok(image) = fetch::get(&mut runner, invocation, &icon, most, within) else {
            continue;
        };
        if image.last().status != 200 || image.problem.is_some() {
            continue;
        }
        if let Some(found) = save(&image.body, most)? {
            return Ok(found.with("final_url", image.last().url.as_str()));
        }
    }
    // What the page holds itself is often a letter or a blank that spares a request.
    let own = site.own.map(|own| save(&own, most)).transpose()?;
    Ok(own.flatten().unwrap_or_else(|| Finding::noresults("the site has no icon")))
}

/// What the visit of the page by the browser says about its icon.
enum Visit {
    Icon(Finding),
    /// The icon is not there yet, or is no image.
    Site(Site),
    None,
}

/// Looks for the icon in the browser, unless the user has set options for curl, which only a request
/// with curl honours.
fn visited(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    most: u64,
) -> Result<Visit, Finding> {
    if !invocation.settings.list("FAVICON_ARGS_EXTRA").is_empty() {
        return Ok(Visit::None);
    }
    let within = runner.remaining() / 2;
    let Some(hops) = visit::responses(invocation, runner, within)? else {
        return Ok(Visit::None);
    };
    let mut site = Site {
        address: hops[hops.len() - 1].url.clone(),
        named: Vec::new(),
        own: None,
        missing: None,
    };
    // A download has no tab that could have asked for an icon.
    if visit::navigation(invocation).is_none() {
        return Ok(Visit::Site(site));
    }
    if let Some(icon) = visit::icon(invocation, runner, ICON_WAIT)? {
        if icon.status == 200
            && let Some(found) = save(&icon.bytes(), most)?
        {
            return Ok(Visit::Icon(found.with("final_url", icon.url)));
        }
        // An icon that has not arrived in time may do so now.
        let has_come = icon.status != 200 || !icon.body.is_empty();
        site.missing = Url::parse(&icon.url).ok().filter(|_| has_come);
    }
    if let Some(page) = source::in_browser(invocation, runner) {
        site.named = html::icons(&page.html, &page.resolver());
        site.own = html::own_icon(&page.html);
        site.address = page.address;
    }
    Ok(Visit::Site(site))
}

fn fetched(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    url: &Url,
) -> Result<Site, Finding> {
    let within = runner.remaining() / 2;
    let fetched = source::request(runner, invocation, url, PAGE_START_BYTES, within)?;
    let address = fetched.last().url.clone();
    let page = source::parse(fetched).ok();
    let icons = |page: &source::ParsedPage| html::icons(&page.html, &page.resolver());
    Ok(Site {
        address,
        named: page.as_ref().map(icons).unwrap_or_default(),
        own: page.and_then(|page| html::own_icon(&page.html)),
        missing: None,
    })
}

/// Saves an icon. `None` if it is no image, or has more than `most` bytes.
fn save(icon: &[u8], most: u64) -> Result<Option<Finding>, Finding> {
    let Some(extension) = image_extension(icon).filter(|_| icon.len() as u64 <= most) else {
        return Ok(None);
    };
    let name = format!("favicon.{extension}");
    files::write(&name, icon)?;
    Ok(Some(Finding::succeeded(name)))
}

fn candidates(named: Vec<Url>, address: &Url) -> Vec<Url> {
    let mut seen = HashSet::new();
    let mut all: Vec<_> =
        named.into_iter().filter(|url| seen.insert(url.clone())).take(PAGE_ICONS_MAX).collect();
    if let Ok(default) = address.join("/favicon.ico")
        && seen.insert(default.clone())
    {
        all.push(default);
    }
    all
}

/// File name extension of an image by its content. `None` if the content is not an image.
fn image_extension(bytes: &[u8]) -> Option<&'static str> {
    let starts: [(&[u8], &str); 8] = [
        (b"\x89PNG\r\n\x1a\n", "png"),
        (b"\0\0\x01\0", "ico"),
        (b"\0\0\x02\0", "ico"),
        (b"GIF87a", "gif"),
        (b"GIF89a", "gif"),
        (b"\xff\xd8\xff", "jpg"),
        (b"BM", "bmp"),
        (b"\0\0\0\x20ftypavif", "avif"),
    ];
    if let Some((_, extension)) = starts.iter().find(|(start, _)| bytes.starts_with(start)) {
        return Some(extension);
    }
    if bytes.starts_with(b"RIFF") && bytes.get(8..12) == Some(b"WEBP") {
        return Some("webp");
    }
    let start = String::from_utf8_lossy(&bytes[..bytes.len().min(1024)]);
    let text = start.trim_start_matches('\u{feff}').trim_start();
    let drawing = text.starts_with("<svg")
        || (text.starts_with("<?xml") || text.starts_with("<!--")) && text.contains("<svg");
    drawing.then_some("svg")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_recognised_by_content() {
        assert_eq!(image_extension(b"\x89PNG\r\n\x1a\n...."), Some("png"));
        assert_eq!(image_extension(b"\0\0\x01\0\x01\0"), Some("ico"));
        assert_eq!(image_extension(b"RIFF....WEBPVP8 "), Some("webp"));
        assert_eq!(image_extension(b"<?xml version='1.0'?><svg xmlns='x'/>"), Some("svg"));
        for no in [&b""[..], b"<!doctype html><svg>", b"Not found", b"RIFF"] {
            assert_eq!(image_extension(no), None);
        }
    }

    #[test]
    fn default_icon_of_the_site_is_tried_last() {
        let address = Url::parse("http://a.test/dir/page").unwrap();
        let icon = Url::parse("http://a.test/i.png").unwrap();
        let all = candidates(vec![icon.clone(), icon.clone()], &address);
        assert_eq!(
            all.iter().map(Url::as_str).collect::<Vec<_>>(),
            ["http://a.test/i.png", "http://a.test/favicon.ico"]
        );
    }
}
