//! Measures how long look-ups in a recording take, and how much memory they need.
//!
//! usage: lookup FILE URL…      prints a line for each URL, after one for opening the file

use archivist_warc::lookup::{Index, Match, Wanted};
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use std::error::Error;
use std::fs::{self, File};
use std::sync::Arc;
use std::time::Instant;

/// Most memory that was resident, in MiB.
fn peak() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kilobytes: u64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kilobytes / 1024)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let [path, urls @ ..] = &arguments[..] else {
        return Err("usage: lookup FILE URL…".into());
    };
    let print = |begin: Instant, what: &str| {
        let taken = begin.elapsed().as_secs_f64() * 1000.0;
        let peak = peak().unwrap_or_default();
        println!("{taken:9.1} ms, at most {peak:4} MiB: {what}");
    };
    let begin = Instant::now();
    let wacz = Arc::new(Wacz::open(File::open(path)?)?);
    let mut index = Index::new();
    index.add(Arc::clone(&wacz));
    print(begin, "open");
    for url in urls {
        let begin = Instant::now();
        let near = Timestamp::UNIX_EPOCH;
        let found = index.find(&Wanted {
            url,
            method: "GET",
            posted: None,
            range: None,
            near,
            redirected: None,
            given: 0,
        });
        let how = match &found {
            None => "missing",
            Some(found) if found.read().is_err() => "not readable",
            Some(found) => match found.fit {
                Match::Exact => "exact",
                Match::Fuzzy(rule) => rule,
            },
        };
        print(begin, &format!("{url}: {how}"));
    }
    Ok(())
}
