//! What the tab of a visit left for the hooks that follow it.

use super::{CDP_URL, ICON, NAVIGATION, Navigation, PLUGIN, RESPONSES};
use crate::page::response::ResponseHead;
use crate::process::files::read_start;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// Upper limit of a document that the tab writes for other hooks.
const DOCUMENT_MAX_BYTES: u64 = 4 << 20;

/// `icon.json`: the icon that the browser asked for.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Icon {
    pub url: String,
    pub status: u16,
    /// Its bytes in base64; empty if it has not arrived.
    pub body: String,
}

impl Icon {
    pub fn bytes(&self) -> Vec<u8> {
        STANDARD.decode(&self.body).unwrap_or_default()
    }
}

/// How the snapshot's page loaded, or `None` if no page loaded for this URL.
pub fn navigation(invocation: &Invocation) -> Option<Navigation> {
    visit(invocation)?.into_result().ok()
}

/// The finding of a hook that needs the page of the last visit, if the tab got none for this URL.
pub fn without_page(invocation: &Invocation) -> Option<Finding> {
    visit(invocation)?.into_result().err()
}

/// The visit of this URL by the snapshot's tab, with or without a page.
fn visit(invocation: &Invocation) -> Option<Navigation> {
    let navigation: Navigation = read(invocation, NAVIGATION)?;
    Some(navigation).filter(|visit| visit.url == invocation.url)
}

fn read<T: DeserializeOwned>(invocation: &Invocation, name: &str) -> Option<T> {
    let bytes = read_start(&directory(invocation).join(name), DOCUMENT_MAX_BYTES)?;
    serde_json::from_slice(&bytes).ok()
}

/// Like [`navigation`], but waits at most `within` for the tab of this visit if a browser is running.
///
/// # Errors
/// If the hook is stopped meanwhile.
pub fn awaited_navigation(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    within: Duration,
) -> Result<Option<Navigation>, Finding> {
    await_visit(invocation, runner, within)?;
    Ok(navigation(invocation))
}

/// Waits for the tab of this visit, if a browser is running, for at most three quarters of the time that the
/// hook has: a worker starts the hooks that follow a tab before a slow page is ready.
///
/// # Errors
/// If the hook is stopped meanwhile.
pub fn await_tab(invocation: &Invocation, runner: &mut ProgramRunner) -> Result<(), Finding> {
    let within = runner.remaining() * 3 / 4;
    await_visit(invocation, runner, within)
}

/// What the server answered to the tab, redirects first. `None` if there is no tab, or if the tab
/// got no last answer, such as that of an address that hooks do not reach. Waits like
/// [`awaited_navigation`].
///
/// # Errors
/// See [`skip_if_unreachable`]; and if the hook is stopped meanwhile.
pub fn responses(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    within: Duration,
) -> Result<Option<Vec<ResponseHead>>, Finding> {
    await_visit(invocation, runner, within)?;
    if visit(invocation).is_none() {
        return Ok(None);
    }
    let hops: Option<Vec<ResponseHead>> = read(invocation, RESPONSES);
    let hops = hops.filter(|hops| hops.last().is_some_and(|last| !last.is_redirect()));
    if hops.is_none() {
        skip_if_unreachable(invocation)?;
    }
    Ok(hops)
}

/// Ends the hook as skipped if the tab could not reach the site, or got no valid certificate and this
/// hook demands one, which a further visit would only confirm.
pub fn skip_if_unreachable(invocation: &Invocation) -> Result<(), Finding> {
    let is_in_vain = visit(invocation).is_some_and(|visit| {
        visit.is_unreachable || (visit.has_invalid_certificate() && checks_certificates(invocation))
    });
    let skip = unanswered(invocation).filter(|_| is_in_vain);
    skip.map_or(Ok(()), Err)
}

fn checks_certificates(invocation: &Invocation) -> bool {
    let settings = &invocation.settings;
    let own = format!("{}_CHECK_SSL_VALIDITY", invocation.prefix());
    if settings.text(&own).is_empty() {
        settings.flag("CHECK_SSL_VALIDITY")
    } else {
        settings.flag(&own)
    }
}

/// The finding of a hook whose own request for the page failed, if the tab got no answer either:
/// skipped, for the reason that the tab has reported. While the crawl has no browser, that was an
/// earlier visit, which says nothing about now.
pub fn unanswered(invocation: &Invocation) -> Option<Finding> {
    let has_browser = super::crawl_directory(invocation).join(CDP_URL).exists();
    let visit = visit(invocation).filter(|visit| has_browser && !visit.is_no_page)?;
    let has_answer = directory(invocation).join(RESPONSES).exists();
    visit.into_result().err().filter(|_| !has_answer)
}

/// Whether the tab of this visit records what the server sends for the URL. Waits like
/// [`awaited_navigation`].
///
/// # Errors
/// If the hook is stopped meanwhile.
pub fn is_recorded(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    within: Duration,
) -> Result<bool, Finding> {
    await_visit(invocation, runner, within)?;
    Ok(visit(invocation).is_some_and(|visit| visit.is_recorded))
}

/// Whether the tab found something other than a page.
pub fn found_no_page(invocation: &Invocation) -> bool {
    visit(invocation).is_some_and(|visit| visit.is_no_page)
}

/// The file that the tab got in place of a page, if it did.
pub fn document(invocation: &Invocation) -> Option<PathBuf> {
    visit(invocation)?;
    super::document_in(&directory(invocation))
}

/// The icon that the browser got with the page. `None` if it has got none `within` this time.
///
/// # Errors
/// If the hook is stopped meanwhile.
pub fn icon(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    within: Duration,
) -> Result<Option<Icon>, Finding> {
    let file = directory(invocation).join(ICON);
    let waiting = async {
        let _ = timeout(within, super::appears(&file)).await;
        Ok(())
    };
    runner.within("waiting for the icon in the browser", waiting)?;
    Ok(read(invocation, ICON))
}

fn await_visit(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    within: Duration,
) -> Result<(), Finding> {
    let directory = directory(invocation);
    let file = directory.join(NAVIGATION);
    let browser = super::crawl_directory(invocation).join(CDP_URL);
    if !file.exists() && (directory.is_dir() || browser.exists()) {
        let appearing = async {
            super::appears(&directory).await?;
            super::appears(&file).await
        };
        // Without a tab, the page is not known.
        let waiting = async {
            let _ = timeout(within, appearing).await;
            Ok(())
        };
        runner.within("waiting for the page in the browser", waiting)?;
    }
    Ok(())
}

/// Directory of the tab.
pub fn directory(invocation: &Invocation) -> PathBuf {
    invocation.sibling(PLUGIN, "")
}
