//! A copy that was stopped before its end, which a later attempt continues.
//!
//! wget cannot do that itself: with `--no-clobber` it reads the files on disk, whose links were
//! converted, and `--timestamping` asks the server for each file again; both write a new WARC file
//! over the one of the first attempt. So the later attempt begins with the WARC file of the earlier
//! one, requests what the page still needs, and appends it.

use super::copy::{PageCopy, is_success};
use std::fs;
use std::path::Path;
use std::time::{Duration, SystemTime};
use url::Url;

/// The file that says which copy is not finished: the URL of its page, and its files in the form in
/// which wget logs them.
const RECORD: &str = "warc/unfinished.log";
/// Largest record in bytes.
const RECORD_MAX_BYTES: u64 = 32 << 20;
/// Time after which a page is saved again as a whole: its files would be of different days.
const AGE_MAX: Duration = Duration::from_secs(24 * 3600);

/// Records that the copy of the page at `url` can be continued.
pub fn record(url: &Url, copy: &PageCopy) -> std::io::Result<()> {
    let files = copy.files();
    let lines = files
        .map(|(address, path)| format!("- - URL:{address} [0] -> \"{}\" [1]\n", path.display()));
    fs::write(RECORD, format!("{url}\n{}", lines.collect::<String>()))
}

/// Forgets the copy of an earlier attempt.
pub fn forget() {
    let _ = fs::remove_file(RECORD);
}

/// The log of an earlier attempt to save the page at `url`, if that can be continued.
pub fn log(url: &Url) -> Option<String> {
    let file = fs::symlink_metadata(RECORD).ok().filter(|file| file.is_file())?;
    let age = SystemTime::now().duration_since(file.modified().ok()?);
    let is_recent = age.is_ok_and(|age| age < AGE_MAX);
    let text = crate::process::files::read_start(Path::new(RECORD), RECORD_MAX_BYTES)
        .filter(|_| is_recent)?;
    let text = String::from_utf8(text).ok()?;
    let (first, log) = text.split_once('\n')?;
    (first == url.as_str()).then(|| log.to_owned())
}

/// Whether the copy has the whole document of the page at `url`, so that only requisites are missing.
pub fn has_page(url: &Url, copy: &PageCopy) -> bool {
    let response = copy.response(url).filter(|response| is_success(response));
    response.is_some_and(|response| copy.warc.is_whole(response).unwrap_or(false))
}
