//! The snapshot's tab as the hooks use it that save the page.

use super::super::page;
use super::cdp::{CdpError, Client, Nothing};
use super::load;
use super::session::{NAVIGATION, Navigation, PLUGIN, TARGET_ID, URL};
use crate::chromium::session;
use crate::process::invocation::Invocation;
use crate::process::program::Runner;
use crate::process::record::Finding;
use base64::Engine;
use serde::Deserialize;
use serde_json::json;
use std::path::PathBuf;

/// HTML and other output that is taken from a page, in bytes, whatever the settings say.
pub const MOST: u64 = 256 << 20;
/// How much of a PDF is asked for at a time, in bytes.
const PIECE: u64 = 1 << 20;

/// The tab, and how its page came.
pub struct View {
    client: Client,
    /// How the page came.
    pub navigation: Navigation,
}

/// How the snapshot's page came, if it did.
pub fn navigation(it: &Invocation) -> Option<Navigation> {
    let bytes = page::start_of(&directory(it).join(NAVIGATION), 1 << 20)?;
    let navigation: Navigation = serde_json::from_slice(&bytes).ok()?;
    navigation
        .arrived()
        .ok()
        .filter(|it_came| it_came.url == it.url)
}

fn directory(it: &Invocation) -> PathBuf {
    it.sibling(PLUGIN, "")
}

/// Waits for the snapshot's page and does `work` with it; no answer may have more than about
/// `most` bytes. What goes wrong with the page is the finding of everything that wants it.
pub fn of_page<T>(
    it: &Invocation,
    runner: &mut Runner,
    most: u64,
    work: impl AsyncFnOnce(&mut View) -> Result<T, Finding>,
) -> Result<(T, Navigation), Finding> {
    it.web_url()?;
    if !directory(it).is_dir() {
        return Err(Finding::failed(
            "the page was not opened in chromium: its hook chromium_tab did not run",
        ));
    }
    runner.within("waiting for the page", async {
        let mut view = open(it, most).await?;
        let done = work(&mut view).await?;
        Ok((done, view.navigation))
    })
}

async fn open(it: &Invocation, most: u64) -> Result<View, Finding> {
    let directory = directory(it);
    let navigation: Navigation = session::awaited(&directory.join(NAVIGATION)).await?;
    let navigation = navigation.arrived()?;
    let text = |name: &str| {
        let bytes = page::start_of(&directory.join(name), 1 << 16);
        let text = bytes.and_then(|bytes| String::from_utf8(bytes).ok());
        text.map(|text| text.trim().to_owned())
            .ok_or_else(|| Finding::failed("the page's tab is closed"))
    };
    let (target, url) = (text(TARGET_ID)?, text(URL)?);
    if url != it.url {
        return Err(Finding::failed(format!(
            "the tab shows another page: '{url}'"
        )));
    }
    // JSON may need six bytes for one, and does for none of what is asked for here.
    let most = usize::try_from(most.saturating_mul(3) / 2 + (4 << 20)).unwrap_or(usize::MAX);
    let mut client = Client::connect(&session::socket_in(&directory)?, most).await?;
    client.attach(&target).await?;
    Ok(View { client, navigation })
}

impl View {
    /// The whole document as it is now.
    ///
    /// Asked of the browser and not of a script: a page can name its elements so that scripts
    /// get them for `document.documentElement`.
    pub async fn html(&mut self) -> Result<String, CdpError> {
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
        let document: Document = self
            .client
            .call("DOM.getDocument", json!({"depth": 0}))
            .await?;
        let node = json!({"nodeId": document.root.node_id});
        let outer: Outer = self.client.call("DOM.getOuterHTML", node).await?;
        Ok(outer.outer_html)
    }

    /// A picture of the window at this size, as PNG.
    pub async fn picture(&mut self, size: (u32, u32)) -> Result<Vec<u8>, Finding> {
        #[derive(Deserialize)]
        struct Shot {
            data: String,
        }
        load::resize(&mut self.client, size).await?;
        let format = json!({"format": "png"});
        let shot: Shot = self.client.call("Page.captureScreenshot", format).await?;
        decode(&shot.data)
    }

    /// The page printed, as PDF of at most `most` bytes.
    pub async fn pdf(&mut self, most: u64) -> Result<Vec<u8>, Finding> {
        #[derive(Deserialize)]
        struct Printed {
            stream: String,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Piece {
            data: String,
            eof: bool,
            #[serde(default)]
            base64_encoded: bool,
        }
        let how = json!({"printBackground": true, "preferCSSPageSize": true,
            "displayHeaderFooter": false, "transferMode": "ReturnAsStream"});
        let printed: Printed = self.client.call("Page.printToPDF", how).await?;
        let mut bytes = Vec::new();
        loop {
            let next = json!({"handle": printed.stream, "size": PIECE});
            let piece: Piece = self.client.call("IO.read", next).await?;
            if piece.base64_encoded {
                bytes.extend(decode(&piece.data)?)
            } else {
                bytes.extend(piece.data.into_bytes())
            }
            if bytes.len() as u64 > most {
                return Err(Finding::failed(format!(
                    "the PDF has more than {most} bytes"
                )));
            }
            if piece.eof {
                let _: Nothing = self
                    .client
                    .call("IO.close", json!({"handle": printed.stream}))
                    .await?;
                return Ok(bytes);
            }
        }
    }
}

fn decode(text: &str) -> Result<Vec<u8>, Finding> {
    let decoded = base64::engine::general_purpose::STANDARD.decode(text);
    decoded.map_err(|error| Finding::failed(format!("chromium sent no base64: {error}")))
}
