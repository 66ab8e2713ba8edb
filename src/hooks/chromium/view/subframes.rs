//! Reads the documents of a page's frames.
//!
//! Frames of other sites are in processes of their own: Chromium reports each of them as a target
//! whose id is that of the frame. All others are in the frame tree of their target.

use crate::chromium::cdp::{CdpError, Connection, Ignored, Session};
use crate::page::framed::{FrameCopy, embed, with_base};
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, timeout_at};

/// Frames of a page that are read.
const FRAMES_MAX: usize = 50;
/// Depth of frames that are read: those of the page have depth 1.
const DEPTH_MAX: usize = 3;
const ALL_TIMEOUT: Duration = Duration::from_secs(15);
/// Time for reading one frame: the process of a busy frame does not answer.
const FRAME_TIMEOUT: Duration = Duration::from_secs(3);
/// The document of a frame without a document of its own.
const EMPTY: &str = "<html><head></head><body></body></html>";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameTree {
    frame: FrameInfo,
    #[serde(default)]
    child_frames: Vec<FrameTree>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameInfo {
    id: String,
    url: String,
    mime_type: String,
}

impl FrameInfo {
    /// Whether its document is none of a server: chromium's viewer of a PDF, or its page about an error.
    fn is_of_browser(&self) -> bool {
        self.mime_type == "application/pdf" || self.url.starts_with("chrome")
    }
}

#[derive(Deserialize)]
struct TreeAnswer {
    #[serde(rename = "frameTree")]
    frame_tree: FrameTree,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    r#type: String,
    #[serde(default)]
    browser_context_id: String,
    parent_frame_id: Option<String>,
}

enum Child<'a> {
    /// In the process of its parent.
    Local(&'a FrameTree),
    /// In a process of its own.
    Remote(String),
}

impl Child<'_> {
    fn id(&self) -> &str {
        match self {
            Child::Local(tree) => &tree.frame.id,
            Child::Remote(id) => id,
        }
    }
}

pub struct FrameReader {
    connection: Connection,
    /// Frames in processes of their own.
    remote: Vec<TargetInfo>,
    /// Most bytes of a document with its frames.
    most: usize,
    until: Instant,
    read: usize,
    left_out: usize,
}

impl FrameReader {
    /// A reader for the tab `main`. Documents with their frames have at most `most` bytes.
    pub async fn new(
        connection: Connection,
        main: &str,
        most: usize,
    ) -> Result<FrameReader, CdpError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Targets {
            target_infos: Vec<TargetInfo>,
        }
        let all = json!({"filter": [{"type": "page"}, {"type": "iframe"}]});
        let all: Targets = connection.browser().call("Target.getTargets", all).await?;
        let mut all = all.target_infos;
        let own = all.iter().find(|target| target.target_id == main);
        let context = own.map(|own| own.browser_context_id.clone());
        all.retain(|target| {
            target.r#type == "iframe" && context.as_ref() == Some(&target.browser_context_id)
        });
        Ok(FrameReader {
            connection,
            remote: all,
            most,
            until: Instant::now() + ALL_TIMEOUT,
            read: 0,
            left_out: 0,
        })
    }

    /// Puts the documents of its frames into the HTML of the page. Returns it, and a remark about
    /// frames that were left out.
    pub async fn embed_all(
        mut self,
        session: &Session,
        html: String,
    ) -> Result<(String, Option<String>), CdpError> {
        let tree = tree_of(session).await?;
        let html = self.embed_children(session, &tree, html, 1).await;
        let note = match self.left_out {
            0 => None,
            1 => Some("1 frame is not in the saved page".to_owned()),
            count => Some(format!("{count} frames are not in the saved page")),
        };
        Ok((html, note))
    }

    async fn embed_children(
        &mut self,
        session: &Session,
        tree: &FrameTree,
        html: String,
        depth: usize,
    ) -> String {
        let own = &tree.frame.id;
        let mut children: Vec<_> = tree.child_frames.iter().map(Child::Local).collect();
        let is_own = |target: &&TargetInfo| target.parent_frame_id.as_ref() == Some(own);
        let remote = self.remote.iter().filter(is_own);
        children.extend(remote.map(|target| Child::Remote(target.target_id.clone())));
        if children.is_empty() {
            return html;
        }
        let mut copies = Vec::new();
        for child in children {
            let may_read = depth <= DEPTH_MAX && self.read < FRAMES_MAX;
            if !may_read || Instant::now() >= self.until {
                self.left_out += 1;
                continue;
            }
            self.read += 1;
            let until = self.until.min(Instant::now() + FRAME_TIMEOUT);
            let reading = Box::pin(self.copy(session, &child, depth));
            match timeout_at(until, reading).await {
                Ok(Ok(Some(copy))) => copies.push(copy),
                Ok(Ok(None)) => {}
                Ok(Err(error)) => {
                    eprintln!("failed to read a frame: {error}, ignoring");
                    self.left_out += 1;
                }
                Err(_) => {
                    eprintln!("failed to read a frame: it did not answer, ignoring");
                    self.left_out += 1;
                }
            }
        }
        let count = copies.len();
        let (html, embedded) = embed(&html, copies, self.most);
        self.left_out += count - embedded;
        html
    }

    /// The document of a frame; `None` if it is empty.
    async fn copy(
        &mut self,
        session: &Session,
        child: &Child<'_>,
        depth: usize,
    ) -> Result<Option<FrameCopy>, CdpError> {
        let owner = owner_of(session, child.id()).await?;
        let (html, base) = match child {
            Child::Local(tree) => self.document(session, tree, depth).await?,
            Child::Remote(id) => {
                let own = self.connection.attach(id).await?;
                let _: Ignored = own.call("DOM.enable", json!({})).await?;
                let tree = tree_of(&own).await?;
                self.document(&own, &tree, depth).await?
            }
        };
        if html == EMPTY {
            return Ok(None);
        }
        let html = with_base(&html, &base);
        Ok(Some(FrameCopy { owner, html }))
    }

    /// HTML of a frame's document with its own frames, and its base URL.
    async fn document(
        &mut self,
        session: &Session,
        tree: &FrameTree,
        depth: usize,
    ) -> Result<(String, String), CdpError> {
        #[derive(Deserialize)]
        struct Described {
            node: Node,
        }
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Node {
            #[serde(default, rename = "baseURL")]
            base_url: String,
        }
        if tree.frame.is_of_browser() {
            return Ok((EMPTY.to_owned(), String::new()));
        }
        let object = document_object(session, &tree.frame.id).await?;
        let node = json!({"objectId": object});
        let described: Described = session.call("DOM.describeNode", node).await?;
        let node = json!({"objectId": object, "includeShadowDOM": true});
        let html = outer_html(session, node).await?;
        let html = Box::pin(self.embed_children(session, tree, html, depth + 1)).await;
        Ok((html, described.node.base_url))
    }
}

async fn tree_of(session: &Session) -> Result<FrameTree, CdpError> {
    let answer: TreeAnswer = session.call("Page.getFrameTree", json!({})).await?;
    Ok(answer.frame_tree)
}

/// HTML of the element that owns a frame.
async fn owner_of(session: &Session, frame: &str) -> Result<String, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Owner {
        backend_node_id: u64,
    }
    let owner: Owner = session.call("DOM.getFrameOwner", json!({"frameId": frame})).await?;
    outer_html(session, json!({"backendNodeId": owner.backend_node_id})).await
}

async fn outer_html(session: &Session, node: Value) -> Result<String, CdpError> {
    #[derive(Deserialize)]
    struct Outer {
        #[serde(rename = "outerHTML")]
        outer_html: String,
    }
    let outer: Outer = session.call("DOM.getOuterHTML", node).await?;
    Ok(outer.outer_html)
}

/// Id of the document of a frame as an object in a world of our own.
async fn document_object(session: &Session, frame: &str) -> Result<String, CdpError> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct World {
        execution_context_id: u64,
    }
    #[derive(Deserialize)]
    struct Evaluated {
        result: Object,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Object {
        #[serde(default)]
        object_id: String,
    }
    let world = json!({"frameId": frame, "worldName": "archivist"});
    let world: World = session.call("Page.createIsolatedWorld", world).await?;
    let document = json!({"expression": "document", "contextId": world.execution_context_id});
    let document: Evaluated = session.call("Runtime.evaluate", document).await?;
    Ok(document.result.object_id)
}
