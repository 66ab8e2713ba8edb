//! `favicon`: saves the icon that the page names, else `/favicon.ico` of its site. Requests no
//! other service.

use crate::page::fetch;
use crate::page::html;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, page};
use std::collections::HashSet;
use url::Url;

/// Number of the page's icons that are tried.
const PAGE_ICONS_MAX: usize = 4;
/// Bytes of the page that are read: icons are named in its head.
const PAGE_START_BYTES: u64 = 512 * 1024;

/// Fetches the page, then its icons until one of them is an image.
pub fn run(invocation: &Invocation) -> Outcome {
    let url = invocation.web_url()?;
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("looking for an icon");
    let within = runner.remaining() / 2;
    let fetched = fetch::get(&mut runner, invocation, &url, PAGE_START_BYTES, within)?;
    let address = fetched.last().url.clone();
    let (named, own) = page::parse(fetched)
        .map(|page| {
            (
                html::icons(&page.html, &page.resolver()),
                html::own_icon(&page.html),
            )
        })
        .unwrap_or_default();
    let most = invocation.settings.size("FAVICON_MAX_SIZE");
    for icon in candidates(named, &address) {
        let within = runner.remaining();
        let Ok(image) = fetch::get(&mut runner, invocation, &icon, most, within) else {
            continue;
        };
        let Some(extension) = image_extension(&image.body).filter(|_| image.problem.is_none())
        else {
            continue;
        };
        if image.last().status != 200 {
            continue;
        }
        let name = format!("favicon.{extension}");
        page::write(&name, &image.body)?;
        return Ok(Finding::succeeded(name).with("final_url", image.last().url.as_str()));
    }
    // What the page holds itself is often a letter or a blank that spares a request.
    let own = own.and_then(|icon| Some((image_extension(&icon)?, icon)));
    if let Some((extension, image)) = own.filter(|(_, image)| image.len() as u64 <= most) {
        let name = format!("favicon.{extension}");
        page::write(&name, &image)?;
        return Ok(Finding::succeeded(name));
    }
    Ok(Finding::noresults("the site has no icon"))
}

fn candidates(named: Vec<Url>, address: &Url) -> Vec<Url> {
    let mut seen = HashSet::new();
    let mut all: Vec<_> = named
        .into_iter()
        .filter(|url| seen.insert(url.clone()))
        .take(PAGE_ICONS_MAX)
        .collect();
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
        assert_eq!(
            image_extension(b"<?xml version='1.0'?><svg xmlns='x'/>"),
            Some("svg")
        );
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
