//! Writes a recording in a thread of its own: compressing bodies must not delay the browser.

use super::masks::Masks;
use super::spool::Spool;
use crate::chromium::browser::world::World;
use crate::chromium::view::look::Look;
use crate::picture::{PictureFormat, compressed};
use crate::visit::recording::{Description, PageInfo, Row};
use archivist_warc::WarcError;
use archivist_warc::exchange::Exchange;
use archivist_warc::wacz::{About, Page, Recording, Summary};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::mpsc;
use url::Url;

/// Requests that wait until they are written.
const WAITING_MAX: usize = 32;

/// Begin of the name of the record with the cookies that scripts of a page could read when it began.
pub const COOKIES: &str = "urn:cookies:";

enum Order {
    Add(Box<Exchange>, Spool, Row),
    Name(Row),
    Look(Result<Look, String>),
    End(usize),
}

pub struct Writer {
    orders: mpsc::Sender<Order>,
    thread: JoinHandle<Description>,
}

impl Writer {
    /// Begins the recording of `url` in an empty file of at most about `most` bytes. `world` is that
    /// of the page, if it is known. All that is written is masked.
    pub fn start(
        file: File,
        name: &str,
        url: &str,
        most: u64,
        world: Option<&World>,
        masks: Arc<Masks>,
    ) -> Result<Writer, WarcError> {
        let begun = Timestamp::now();
        let about = About {
            software: format!("archivist {}", env!("CARGO_PKG_VERSION")),
            title: url.to_owned(),
            main_url: url.to_owned(),
            created: begun,
        };
        let mut recording = Recording::create(file, &about)?;
        if let Some(world) = world {
            let name = World::record(url);
            let world = serde_json::to_vec(world).map_err(|error| failed(&name, error.into()))?;
            recording.add_resource(&name, "application/json", begun, &world)?;
        }
        let writing = Writing {
            recording,
            url: url.to_owned(),
            begun,
            most,
            masks,
            hosts: BTreeSet::new(),
            rows: Vec::new(),
            title: String::new(),
            text: String::new(),
            errors: None,
            description: Description::begun(url, name),
        };
        let (orders, waiting) = mpsc::channel(WAITING_MAX);
        Ok(Writer { orders, thread: std::thread::spawn(move || writing.run(waiting)) })
    }

    /// Adds a request and its response. Waits while many others are being written.
    pub async fn add(&self, exchange: Box<Exchange>, body: Spool, row: Row) {
        let _ = self.orders.send(Order::Add(exchange, body, row)).await;
    }

    /// Names a request that is not kept.
    pub async fn name(&self, row: Row) {
        let _ = self.orders.send(Order::Name(row)).await;
    }

    /// Adds what the page looks like, or why that is not known.
    pub async fn look(&self, look: Result<Look, String>) {
        let _ = self.orders.send(Order::Look(look)).await;
    }

    /// Completes the file. `left_out` is the number of requests that were not looked at.
    pub async fn end(self, left_out: usize) -> Description {
        let _ = self.orders.send(Order::End(left_out)).await;
        let joined = tokio::task::spawn_blocking(move || self.thread.join()).await;
        match joined {
            Ok(Ok(description)) => description,
            _ => Description {
                error: Some("the thread that writes the recording has failed".to_owned()),
                ..Description::default()
            },
        }
    }
}

struct Writing {
    recording: Recording,
    url: String,
    begun: Timestamp,
    most: u64,
    masks: Arc<Masks>,
    /// Hosts that were asked, whose cookies scripts may have read.
    hosts: BTreeSet<String>,
    rows: Vec<Row>,
    title: String,
    text: String,
    errors: Option<Vec<String>>,
    description: Description,
}

impl Writing {
    fn run(mut self, mut orders: mpsc::Receiver<Order>) -> Description {
        while let Some(order) = orders.blocking_recv() {
            match order {
                Order::Add(exchange, body, row) => self.add(*exchange, body, row),
                Order::Name(row) => self.name(row, false),
                Order::Look(Ok(look)) => self.look(look),
                Order::Look(Err(reason)) => self.description.not_seen = Some(reason),
                Order::End(left_out) => return self.end(left_out),
            }
        }
        self.end(0)
    }

    fn add(&mut self, mut exchange: Exchange, body: Spool, mut row: Row) {
        let length = body.length();
        if !self.masks.are_none() {
            let url = Url::parse(&exchange.url);
            self.hosts.extend(url.ok().and_then(|url| url.host_str().map(str::to_owned)));
            self.masks.exchange(&mut exchange);
        }
        if self.recording.bytes().saturating_add(length) > self.most {
            row.reason = Some(format!("the recording has WACZ_MAX_SIZE={} bytes", self.most));
            self.name(row, false);
            return;
        }
        row.bytes = length;
        let reader = body.into_reader().map_err(|error| failed("the body", error));
        let added = reader.and_then(|body| {
            let mut body = self.masks.body(body, &row.mime);
            self.recording.add(&exchange, &mut body, length)
        });
        if let Err(error) = &added {
            row.bytes = 0;
            row.reason = Some(error.to_string());
        }
        self.name(row, added.is_ok());
    }

    fn name(&mut self, mut row: Row, is_kept: bool) {
        row.url = self.masks.text(&row.url);
        self.description.add(&row, is_kept);
        self.rows.push(row);
    }

    /// Adds what the page looks like at once, so that it is in the file of a tab that is killed.
    fn look(&mut self, look: Look) {
        let now = Timestamp::now();
        let masked = |text: &String| self.masks.text(text);
        let errors = look.errors.map(|errors| errors.iter().map(masked).collect());
        (self.title, self.text, self.errors) = (masked(&look.title), masked(&look.text), errors);
        let picture = compressed(look.picture);
        let resources = [
            ("view", PictureFormat::of(&picture).media_type(), picture.as_slice()),
            ("text", "text/plain", self.text.as_bytes()),
        ];
        for (kind, mime, bytes) in resources {
            let name = format!("urn:{kind}:{}", self.url);
            if bytes.is_empty() {
                continue;
            }
            if let Err(error) = self.recording.add_resource(&name, mime, now, bytes) {
                self.description.not_seen = Some(format!("failed to store its {kind}: {error}"));
            }
        }
    }

    fn end(self, left_out: usize) -> Description {
        let mut description = self.description.clone();
        description.forget_repeated(&self.rows);
        match self.complete(left_out) {
            Ok(summary) => {
                description.bytes = summary.bytes;
                description.is_complete = true;
            }
            Err(error) => description.error = Some(error.to_string()),
        }
        description
    }

    fn complete(mut self, left_out: usize) -> Result<Summary, WarcError> {
        let now = Timestamp::now();
        let url = self.url;
        let name = format!("urn:pageinfo:{url}");
        let info =
            PageInfo { url: url.clone(), requests: self.rows, left_out, errors: self.errors };
        let info = serde_json::to_vec(&info).map_err(|error| failed(&name, error.into()))?;
        self.recording.add_resource(&name, "application/json", now, &info)?;
        let cookies = self.masks.readable(&self.hosts);
        if !cookies.is_empty() {
            let name = format!("{COOKIES}{url}");
            let cookies =
                serde_json::to_vec(&cookies).map_err(|error| failed(&name, error.into()))?;
            self.recording.add_resource(&name, "application/json", self.begun, &cookies)?;
        }
        self.recording.add_page(Page {
            url,
            title: self.title,
            time: self.begun,
            text: Some(self.text).filter(|text| !text.is_empty()),
        });
        self.recording.finish()
    }
}

fn failed(part: &str, error: io::Error) -> WarcError {
    WarcError::Io { part: part.to_owned(), error }
}
