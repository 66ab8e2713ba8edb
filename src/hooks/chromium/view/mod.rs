//! The snapshot's tab from the side of the hooks that save the page.

pub(crate) mod glyphs;
pub(crate) mod look;
mod subframes;

use crate::chromium::browser::viewport;
use crate::chromium::cdp::isolated_world;
use crate::chromium::cdp::stream;
use crate::chromium::cdp::{CdpError, Connection, Ignored, Session};
use crate::page;
use crate::picture::PictureFormat;
use crate::process::files;
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::visit::{self, NAVIGATION, Navigation, TARGET_ID, URL};
use encoding_rs::{Encoding, UTF_8};
use look::capture;
use serde::Deserialize;
use serde_json::{Value, json};
use subframes::FrameReader;

/// Upper limit of the HTML and other output of a page in bytes, whatever the settings say.
pub const PAGE_MAX_BYTES: u64 = 256 << 20;
const CSS_PIXELS_PER_INCH: f64 = 96.0;
/// Margin that chromium leaves on each side of the paper.
const MARGIN_INCHES: f64 = 0.4;
/// Height of a letter in parts of its width.
const LETTER_RATIO: f64 = 11.0 / 8.5;

/// Waits until a page that moves its content itself has found what is in view in a higher viewport: such pages
/// look at the size of the window when it has not changed for a moment.
pub const REACTED: &str = "() => new Promise((reacted) => setTimeout(reacted, 1000))";

/// The encoding of the document: elements can have the names of its properties.
const CHARACTER_SET: &str =
    "() => Object.getOwnPropertyDescriptor(Document.prototype, 'characterSet').get.call(document)";

/// Keeps the state of the page in its markup.
const KEEP_STATE: &str = include_str!("state.js");
/// Characters of state that are added to a document.
const STATE_MAX_CHARS: u32 = 8 << 20;

pub struct TabView {
    connection: Connection,
    session: Session,
    frame: String,
    pub navigation: Navigation,
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
    if !visit::directory(invocation).is_dir() {
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
    let directory = visit::directory(invocation);
    let loaded: Navigation = visit::wait_for(&directory.join(NAVIGATION)).await?;
    let navigation = loaded.into_result()?;
    let text = |name: &str| {
        let bytes = files::read_start(&directory.join(name), 1 << 16);
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
    let connection = Connection::open(&visit::socket_in(&directory)?, most).await?;
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

    /// Width and height of the whole page in pixels, and how much of it is to the left of the viewport.
    pub async fn page_size(&self) -> Result<(u32, u32, u32), CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Metrics {
            css_content_size: Size,
            css_layout_viewport: Place,
        }
        #[derive(Deserialize)]
        struct Size {
            width: f64,
            height: f64,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Place {
            page_x: f64,
        }
        let metrics: Metrics = self.session.call("Page.getLayoutMetrics", json!({})).await?;
        let Size { width, height } = metrics.css_content_size;
        let left = metrics.css_layout_viewport.page_x;
        Ok((width.ceil() as u32, height.ceil() as u32, left as u32))
    }

    /// Sets the size of the viewport in pixels.
    pub async fn resize(&self, size: (u32, u32)) -> Result<(), CdpError> {
        viewport::resize(&self.session, size, None).await
    }

    /// A picture of `size` pixels at the top of the page, from its pixel `left` on, of `scale` times that
    /// size. What is in the `viewport` takes less time.
    pub async fn screenshot(
        &self,
        left: u32,
        size: (u32, u32),
        viewport: (u32, u32),
        scale: f64,
        format: PictureFormat,
    ) -> Result<Vec<u8>, Finding> {
        let (width, height) = size;
        let is_beyond = width > viewport.0 || height > viewport.1;
        let how = json!({"captureBeyondViewport": is_beyond,
            "clip": {"x": left, "y": 0, "width": width, "height": height, "scale": scale}});
        capture(&self.session, format, how).await
    }

    /// Evaluates a function of our own in the page, see [`isolated_world::evaluate`].
    pub async fn evaluate(&self, function: &str, arguments: &[Value]) -> Result<Value, CdpError> {
        isolated_world::evaluate(&self.session, &self.frame, function, arguments).await
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
