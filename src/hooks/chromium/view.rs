//! The snapshot's tab from the side of the hooks that save the page.

use super::super::page;
use super::answers::Icon;
use super::cdp::{CdpError, Connection, Ignored, Session};
use super::session::{
    CDP_URL, DOCUMENT, ICON, NAVIGATION, Navigation, PLUGIN, RESPONSES, TARGET_ID, URL,
};
use super::subframes::FrameReader;
use super::{load, reveal, stream};
use crate::chromium::session;
use crate::page::fetch::Hop;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use encoding_rs::{Encoding, UTF_8};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::Duration;
use tokio::time::timeout;

/// Upper limit of the HTML and other output of a page in bytes, whatever the settings say.
pub const PAGE_MAX_BYTES: u64 = 256 << 20;
/// Upper limit of a document that the tab writes for other hooks.
const DOCUMENT_MAX_BYTES: u64 = 4 << 20;
const CSS_PIXELS_PER_INCH: f64 = 96.0;
/// Margin that chromium leaves on each side of the paper.
const MARGIN_INCHES: f64 = 0.4;
/// Height of a letter in parts of its width.
const LETTER_RATIO: f64 = 11.0 / 8.5;

/// The encoding of the document: elements can have the names of its properties.
const CHARACTER_SET: &str =
    "() => Object.getOwnPropertyDescriptor(Document.prototype, 'characterSet').get.call(document)";

/// Keeps the state of the page in its markup.
const KEEP_STATE: &str = include_str!("state.js");
/// Characters of state that are added to a document.
const STATE_MAX_CHARS: u32 = 8 << 20;

/// A connection to the tab, and how its page loaded.
pub struct TabView {
    connection: Connection,
    session: Session,
    /// Id of the main frame.
    frame: String,
    /// How the page loaded.
    pub navigation: Navigation,
}

/// How the snapshot's page loaded, or `None` if no page loaded for this URL.
pub fn navigation(invocation: &Invocation) -> Option<Navigation> {
    visit(invocation)?.into_result().ok()
}

/// The visit of this URL by the snapshot's tab, with or without a page.
fn visit(invocation: &Invocation) -> Option<Navigation> {
    let navigation: Navigation = read(invocation, NAVIGATION)?;
    Some(navigation).filter(|visit| visit.url == invocation.url)
}

/// A document that the tab has written.
fn read<T: DeserializeOwned>(invocation: &Invocation, name: &str) -> Option<T> {
    let bytes = page::read_start(&directory(invocation).join(name), DOCUMENT_MAX_BYTES)?;
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
) -> Result<Option<Vec<Hop>>, Finding> {
    await_visit(invocation, runner, within)?;
    if visit(invocation).is_none() {
        return Ok(None);
    }
    let hops: Option<Vec<Hop>> = read(invocation, RESPONSES);
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
    let has_browser = session::crawl_directory(invocation).join(CDP_URL).exists();
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
    Some(directory(invocation).join(DOCUMENT)).filter(|path| path.is_file())
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
        let _ = timeout(within, session::appears(&file)).await;
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
    let browser = session::crawl_directory(invocation).join(CDP_URL);
    if !file.exists() && (directory.is_dir() || browser.exists()) {
        let appearing = async {
            session::appears(&directory).await?;
            session::appears(&file).await
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

fn directory(invocation: &Invocation) -> PathBuf {
    invocation.sibling(PLUGIN, "")
}

/// Waits for the snapshot's page and calls `work` with its tab. Answers are limited to about `most`
/// bytes. When the page failed to load, its failure is the finding of every hook that needs the
/// page.
pub fn with_page<T>(
    invocation: &Invocation,
    runner: &mut ProgramRunner,
    most: u64,
    work: impl AsyncFnOnce(&TabView) -> Result<T, Finding>,
) -> Result<(T, Navigation), Finding> {
    invocation.web_url()?;
    if !directory(invocation).is_dir() {
        return Err(Finding::failed(
            "the page was not opened in chromium: its hook chromium_tab did not run",
        ));
    }
    runner.within("waiting for the page", async {
        let view = open(invocation, most).await?;
        let done = work(&view).await?;
        Ok((done, view.navigation))
    })
}

async fn open(invocation: &Invocation, most: u64) -> Result<TabView, Finding> {
    let directory = directory(invocation);
    let loaded: Navigation = session::wait_for(&directory.join(NAVIGATION)).await?;
    let navigation = loaded.into_result()?;
    let text = |name: &str| {
        let bytes = page::read_start(&directory.join(name), 1 << 16);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| text.trim().to_owned())
            .ok_or_else(|| Finding::failed("the tab of the page is closed"))
    };
    let (target, url) = (text(TARGET_ID)?, text(URL)?);
    if url != invocation.url {
        return Err(Finding::failed(format!("the tab shows a different page: '{url}'")));
    }
    // The answers requested here are HTML and base64: JSON escapes add less than half.
    let most = usize::try_from(most.saturating_mul(3) / 2 + (4 << 20)).unwrap_or(usize::MAX);
    let connection = Connection::open(&session::socket_in(&directory)?, most).await?;
    Ok(TabView {
        session: connection.attach(&target).await?,
        connection,
        frame: target,
        navigation,
    })
}

impl TabView {
    /// The document's HTML in its present state, with its shadow roots as `template` elements.
    ///
    /// The request goes to the browser, not to a script: a page can name its elements so that
    /// scripts get an element for `document.documentElement`.
    pub async fn html(&self) -> Result<String, CdpError> {
        #[derive(Deserialize)]
        struct Document {
            root: Node,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Node {
            node_id: u64,
        }
        #[derive(Deserialize)]
        struct Outer {
            #[serde(rename = "outerHTML")]
            outer_html: String,
        }
        let document = json!({"depth": 0});
        let document: Document = self.session.call("DOM.getDocument", document).await?;
        let node = json!({"nodeId": document.root.node_id, "includeShadowDOM": true});
        let outer: Outer = self.session.call("DOM.getOuterHTML", node).await?;
        Ok(outer.outer_html)
    }

    /// The document's HTML in its present state with the documents of its frames, as long as that
    /// has at most `most` bytes. Its declarations say UTF-8, and keep the encoding of the server's
    /// document. Returns it, and a remark about frames that were left out.
    pub async fn document(&self, most: u64) -> Result<(String, Option<String>), CdpError> {
        let is_kept = self.keep_state(true).await;
        let html = self.html().await;
        if is_kept {
            self.keep_state(false).await;
        }
        let most = usize::try_from(most).unwrap_or(usize::MAX);
        let (html, note) = self.with_frames(html?, most).await?;
        let label = self.evaluate(CHARACTER_SET, &[]).await?;
        let label = label.as_str().unwrap_or_default();
        let encoding = Encoding::for_label(label.as_bytes()).unwrap_or(UTF_8);
        Ok((page::declaration::declare_utf8(&html, encoding), note))
    }

    /// Puts the documents of frames into the HTML of the page.
    async fn with_frames(
        &self,
        html: String,
        most: usize,
    ) -> Result<(String, Option<String>), CdpError> {
        let has_frames = html.contains("<iframe");
        if !has_frames {
            return Ok((html, None));
        }
        let reader = FrameReader::new(self.connection.clone(), &self.frame, most).await?;
        reader.embed_all(&self.session, html).await
    }

    /// Writes what the page shows and its markup does not say into the markup, or undoes that: the
    /// rules of style sheets that scripts made, canvases, fields of forms. Returns whether anything
    /// was changed. What fails is only logged: the document is saved without it.
    async fn keep_state(&self, on: bool) -> bool {
        let arguments = [json!(on), json!(STATE_MAX_CHARS)];
        match self.evaluate(KEEP_STATE, &arguments).await {
            Ok(changes) => changes.as_u64().is_some_and(|changes| changes > 0),
            Err(error) => {
                eprintln!("failed to read the state of the page: {error}, ignoring");
                false
            }
        }
    }

    /// Width and height of the whole page in pixels.
    pub async fn page_size(&self) -> Result<(u32, u32), CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metrics {
            css_content_size: Size,
        }
        #[derive(Deserialize)]
        struct Size {
            width: f64,
            height: f64,
        }
        let metrics: Metrics = self.session.call("Page.getLayoutMetrics", json!({})).await?;
        let size = metrics.css_content_size;
        Ok((size.width.ceil() as u32, size.height.ceil() as u32))
    }

    /// Sets the size of the viewport in pixels.
    pub async fn resize(&self, size: (u32, u32)) -> Result<(), CdpError> {
        load::resize(&self.session, size).await
    }

    /// A picture of the page's first `size` pixels, as PNG of `scale` times that size. What is in
    /// the `viewport` takes less time.
    pub async fn screenshot(
        &self,
        size: (u32, u32),
        viewport: (u32, u32),
        scale: f64,
    ) -> Result<Vec<u8>, Finding> {
        #[derive(Deserialize)]
        struct Shot {
            data: String,
        }
        let (width, height) = size;
        let is_beyond = width > viewport.0 || height > viewport.1;
        let format = json!({"format": "png", "captureBeyondViewport": is_beyond,
            "clip": {"x": 0, "y": 0, "width": width, "height": height, "scale": scale}});
        let shot: Shot = self.session.call("Page.captureScreenshot", format).await?;
        stream::decode(&shot.data)
    }

    /// Evaluates a function of our own in the page, see [`reveal::evaluate`].
    pub async fn evaluate(&self, function: &str, arguments: &[Value]) -> Result<Value, CdpError> {
        reveal::evaluate(&self.session, &self.frame, function, arguments).await
    }

    /// Lays out the page for this medium, `screen` or `print`; an empty text is the default.
    pub async fn set_media(&self, media: &str) -> Result<(), CdpError> {
        let media = json!({"media": media});
        let set = self.session.call::<Ignored>("Emulation.setEmulatedMedia", media);
        set.await.map(drop)
    }

    /// The page as PDF of at most `most` bytes. `width` is the width of the paper in pixels, if it
    /// is not that of a letter or of the page's style sheet.
    pub async fn pdf(&self, most: u64, width: Option<u32>) -> Result<Vec<u8>, Finding> {
        #[derive(Deserialize)]
        struct Printed {
            stream: String,
        }
        let mut how = json!({"printBackground": true, "preferCSSPageSize": true,
            "displayHeaderFooter": false, "transferMode": "ReturnAsStream"});
        if let Some(width) = width {
            let inches = f64::from(width) / CSS_PIXELS_PER_INCH + 2.0 * MARGIN_INCHES;
            how["preferCSSPageSize"] = false.into();
            how["paperWidth"] = inches.into();
            how["paperHeight"] = (inches * LETTER_RATIO).into();
        }
        let printed: Printed = self.session.call("Page.printToPDF", how).await?;
        let mut bytes = Vec::new();
        let append = |piece: &[u8]| {
            bytes.extend_from_slice(piece);
            if bytes.len() as u64 > most {
                return Err(Finding::failed(format!("the PDF has more than {most} bytes")));
            }
            Ok(())
        };
        stream::read(&self.session, &printed.stream, append).await?;
        Ok(bytes)
    }
}
