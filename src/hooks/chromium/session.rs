//! The files by which hooks find the browser and its tab.
//!
//! In `CRAWL_DIR/chromium` is the crawl's browser: `browser.json` when it is ready or has failed,
//! `cdp_url.txt` and the socket that it names while it runs. In `SNAP_DIR/chromium` is the
//! snapshot's tab: `cdp_url.txt`, `target_id.txt`, `url.txt`, and `navigation.json` when the page
//! has come or failed. Markers of what is gone are removed.

use super::super::page;
use crate::process::invocation::Invocation;
use crate::process::record::Finding;
use futures_util::StreamExt;
use inotify::{Inotify, WatchMask};
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

/// Name of the plugin, and of its directories.
pub const PLUGIN: &str = "chromium";
/// The socket on which a browser is reached.
pub const SOCKET: &str = "cdp.sock";
pub const CDP_URL: &str = "cdp_url.txt";
pub const TARGET_ID: &str = "target_id.txt";
pub const URL: &str = "url.txt";
pub const BROWSER: &str = "browser.json";
pub const NAVIGATION: &str = "navigation.json";

/// `browser.json`: the browser of a crawl or snapshot.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Browser {
    /// Name and version.
    #[serde(default)]
    pub product: String,
    #[serde(default)]
    pub user_agent: String,
    /// Why there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// `navigation.json`: how the page came.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Navigation {
    pub wait_until: String,
    /// Milliseconds from the request until the page was ready to be saved.
    pub elapsed: u64,
    pub url: String,
    pub final_url: String,
    /// HTTP status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u64>,
    pub mime_type: String,
    /// RFC 3339.
    pub timestamp: String,
    /// Set if the page never finished: what is saved shows it as far as it had come.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Why there is no page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// There is no page because the URL is none: the error is no failure.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_no_page: bool,
}

impl Navigation {
    /// The navigation that ended with this finding.
    pub fn failed(url: &str, finding: &Finding) -> Navigation {
        Navigation {
            url: url.to_owned(),
            error: Some(finding.output_str.clone()),
            is_no_page: finding.exit_code() == 0,
            ..Navigation::default()
        }
    }

    /// The page is there; otherwise what is to be said of everything that wants it.
    pub fn arrived(self) -> Result<Navigation, Finding> {
        match (&self.error, self.is_no_page) {
            (None, _) => Ok(self),
            (Some(reason), true) => Err(Finding::noresults(reason.clone())),
            (Some(reason), false) => Err(Finding::failed(reason.clone())),
        }
    }
}

/// Where the crawl's browser says what it is.
pub fn crawl_directory(it: &Invocation) -> PathBuf {
    let crawl = it.settings.variable("CRAWL_DIR").unwrap_or("..");
    Path::new(crawl).join(PLUGIN)
}

/// The socket that a `cdp_url.txt` names.
pub fn socket_in(directory: &Path) -> Result<PathBuf, Finding> {
    let file = directory.join(CDP_URL);
    let text = fs::read_to_string(&file).map_err(|error| {
        Finding::failed(format!("no browser runs: {}: {error}", file.display()))
    })?;
    let path = text.trim().strip_prefix("unix:").map(PathBuf::from);
    path.ok_or_else(|| Finding::failed(format!("no address of a browser in {}", file.display())))
}

/// Writes `cdp_url.txt` into the working directory, and nothing else that is there of old.
pub fn announce(socket: &Path) -> Result<(), Finding> {
    page::write(CDP_URL, format!("unix:{}\n", socket.display()).as_bytes())
}

/// Writes a document into the working directory.
pub fn write(name: &str, document: &impl Serialize) -> Result<(), Finding> {
    let text = serde_json::to_string_pretty(document)
        .map_err(|error| Finding::failed(format!("failed to write {name}: {error}")))?;
    page::write(name, format!("{text}\n").as_bytes())
}

/// Removes files of the working directory that nobody is to find any more.
pub fn withdraw(names: &[&str]) {
    for name in names {
        match fs::remove_file(name) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                eprintln!("failed to remove {name}: {error}, ignoring");
            }
            _ => {}
        }
    }
}

/// Waits until a file is there, and reads it. To be given a deadline.
pub async fn awaited<T: for<'a> Deserialize<'a>>(path: &Path) -> Result<T, Finding> {
    let fail = |error: &dyn std::fmt::Display| {
        Finding::failed(format!("failed to read {}: {error}", path.display()))
    };
    appears(path).await.map_err(|error| fail(&error))?;
    let bytes = page::start_of(path, 1 << 20).ok_or_else(|| fail(&"not a file with text in it"))?;
    serde_json::from_slice(&bytes).map_err(|error| fail(&error))
}

async fn appears(path: &Path) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    let inotify = Inotify::init()?;
    // Watched before it is looked for: what comes in between is an event.
    inotify
        .watches()
        .add(directory, WatchMask::MOVED_TO | WatchMask::CREATE)?;
    let mut events = inotify.into_event_stream([0; 4096])?;
    while !path.exists() {
        events.next().await.ok_or(io::ErrorKind::UnexpectedEof)??;
    }
    Ok(())
}

/// Does something with a socket under a path that is short enough for one: archive directories
/// may be longer than the 107 bytes of unix(7).
pub fn through_directory<T>(
    socket: &Path,
    act: impl FnOnce(&Path) -> io::Result<T>,
) -> io::Result<T> {
    let (Some(directory), Some(name)) = (socket.parent(), socket.file_name()) else {
        return Err(io::ErrorKind::InvalidInput.into());
    };
    let directory = File::open(directory)?;
    let short = format!("/proc/self/fd/{}", directory.as_raw_fd());
    act(&Path::new(&short).join(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_failed_navigation_fails_all_that_want_the_page() {
        let failed = Navigation::failed("http://a.test/", &Finding::failed("net::ERR_X"));
        let text = serde_json::to_string(&failed).unwrap();
        let back: Navigation = serde_json::from_str(&text).unwrap();
        assert_eq!(back.clone().arrived().unwrap_err().exit_code(), 1);
        let none = Navigation::failed("http://a.test/", &Finding::noresults("a download"));
        assert_eq!(none.arrived().unwrap_err().exit_code(), 0);
        assert!(
            serde_json::from_str::<Navigation>("{\"url\":\"x\"}")
                .unwrap()
                .arrived()
                .is_ok()
        );
    }

    #[test]
    fn sockets_in_long_directories() {
        let top = tempfile::tempdir().unwrap();
        let long = top.path().join("d".repeat(200));
        fs::create_dir(&long).unwrap();
        let socket = long.join(SOCKET);
        let listener =
            through_directory(&socket, |path| std::os::unix::net::UnixListener::bind(path));
        let _listener = listener.unwrap();
        assert!(
            through_directory(&socket, |path| std::os::unix::net::UnixStream::connect(
                path
            ))
            .is_ok()
        );
    }

    #[tokio::test]
    async fn a_file_that_comes_later_is_read() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join(NAVIGATION);
        let wait = awaited::<Navigation>(&file);
        let write = async {
            fs::write(top.path().join("other"), "x").unwrap();
            tokio::task::yield_now().await;
            let part = top.path().join("part");
            fs::write(&part, "{\"finalUrl\": \"http://b.test/\"}").unwrap();
            fs::rename(part, &file).unwrap();
        };
        let both = async { tokio::join!(wait, write).0 };
        let seen = tokio::time::timeout(Duration::from_secs(5), both)
            .await
            .unwrap();
        assert_eq!(seen.unwrap().final_url, "http://b.test/");
    }
}
