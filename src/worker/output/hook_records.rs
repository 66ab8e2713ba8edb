//! Collects the records on a hook's standard output, up to the bounds of a report.

use archivist_core::model::{TAG_MAX, TEXT_MAX, Tags};
use archivist_plugin::contract::record::{Binary, Machine, SonicDaemonStart, parse_child};
use archivist_plugin::{
    ArchiveResult, ChildSnapshot, LINE_MAX_BYTES, LineReader, Record, parse_line,
};
use archivist_shared::bus::documents::bounds::{Children, DERIVED_MAX, LeftOut, program};
use archivist_shared::bus::documents::work::{Child, Derived, Found, SonicWish};
use std::collections::BTreeMap;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;

#[derive(Debug, Default)]
pub struct HookRecords {
    pub result: Option<ArchiveResult>,
    pub children: Children,
    pub tags: Tags,
    /// Name of the program that this hook is asked to provide, if any.
    pub requested: Option<String>,
    pub binary: Option<Found>,
    pub derived: Derived,
    /// Number of settings, programs and requests above the bounds.
    pub dropped: u64,
    /// Bytes of output above the bound.
    pub unread: u64,
}

/// Longest output that is read, in bytes. Of a longer one, the head of this length is read, and the tail,
/// because its last line may be the result.
const OUTPUT_MAX: u64 = 256 << 20;
/// The same of the tail.
const TAIL_MAX: u64 = LINE_MAX_BYTES as u64;

impl HookRecords {
    /// Number of records above the bounds.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            pages: self.children.dropped,
            tags: self.tags.dropped + self.children.dropped_tags,
            others: self.dropped,
            bytes: self.unread,
        }
    }

    pub fn take(&mut self, line: &[u8]) {
        match parse_line(line) {
            Some(Record::ArchiveResult(result)) => self.result = Some(result),
            Some(Record::Snapshot(child)) => self.child(child),
            Some(Record::Tag { name, .. }) => self.tags.push(name),
            Some(Record::Binary(binary)) => self.binary(binary),
            Some(Record::Machine(machine)) => self.machine(machine),
            Some(Record::SonicDaemonStart(requested)) => {
                let SonicDaemonStart { config_path, host, port, .. } = requested;
                self.derived.sonic = Some(SonicWish { config_path, host, port });
            }
            None => {}
        }
    }

    /// Limits only the number and size of settings. The orchestrator decides which of them to keep.
    fn machine(&mut self, machine: Machine) {
        let settings = &mut self.derived.settings;
        for (key, value) in machine.config {
            let known = settings.contains_key(&key) || settings.len() < DERIVED_MAX;
            if known && key.len() + value.len() <= TEXT_MAX {
                settings.insert(key, value);
            } else {
                self.dropped += 1;
            }
        }
    }

    fn child(&mut self, child: ChildSnapshot) {
        let ChildSnapshot { url, title, tags, bookmarked_at, .. } = child;
        self.children.push(Child { url, title, bookmarked_at, tags });
    }

    /// Processes a Binary record. For a provider, the first record with the requested name and a
    /// path is the answer. For other hooks, each record reports an installed program.
    fn binary(&mut self, binary: Binary) {
        let Some(abspath) = binary.abspath else {
            return self.request(&binary);
        };
        let found = program(Found {
            name: binary.name,
            abspath,
            version: binary.version,
            provider: binary.binprovider,
            env: binary.env,
        });
        match &self.requested {
            Some(requested) if *requested == found.name && self.binary.is_none() => {
                self.binary = Some(found);
            }
            None if self.derived.programs.len() < DERIVED_MAX && found.name.len() <= TEXT_MAX => {
                let env = BTreeMap::new();
                self.derived.programs.push(Found { env, ..found });
            }
            None => self.dropped += 1,
            _ => {}
        }
    }

    /// Records a request for a program. Requests of providers are ignored: they get dependencies by
    /// their own means.
    fn request(&mut self, binary: &Binary) {
        let requests = &mut self.derived.wanted;
        if self.requested.is_none() && requests.len() < DERIVED_MAX && binary.name.len() <= TAG_MAX
        {
            let providers = binary
                .raw
                .get("binproviders")
                .and_then(|list| list.as_str())
                .filter(|list| list.len() <= TAG_MAX);
            requests.insert(binary.name.clone(), providers.unwrap_or_default().to_owned());
        }
    }

    /// Processes a line of a file of child pages, where the field `type` is optional.
    pub fn take_child(&mut self, line: &[u8]) {
        if let Some(child) = parse_child(line) {
            self.child(child);
        }
    }

    /// Reads a file in bounded memory, up to the length that it has now: a process of the hook may still
    /// write to it.
    ///
    /// # Errors
    /// If read(2) fails.
    pub fn read(&mut self, file: &File, take: Take) -> std::io::Result<()> {
        self.read_up_to(file, OUTPUT_MAX, take)
    }

    fn read_up_to(&mut self, file: &File, most: u64, take: Take) -> std::io::Result<()> {
        let length = file.metadata()?.len();
        let head = length.min(most);
        let tail = length.saturating_sub(TAIL_MAX).max(head);
        self.unread += tail - head;
        self.read_range(file, 0..head, take)?;
        self.read_range(file, tail..length, take)
    }

    fn read_range(&mut self, file: &File, range: Range<u64>, take: Take) -> std::io::Result<()> {
        let mut lines = LineReader::default();
        let (mut buffer, mut offset) = (vec![0; 64 * 1024], range.start);
        while offset < range.end {
            let most = usize::try_from(range.end - offset).unwrap_or(usize::MAX);
            let most = most.min(buffer.len());
            let length = file.read_at(&mut buffer[..most], offset)?;
            if length == 0 {
                break;
            }
            offset += length as u64;
            lines.feed(&buffer[..length], &mut |line| take(self, line));
        }
        lines.finish(&mut |line| take(self, line));
        Ok(())
    }
}

/// What is done with a line.
type Take = fn(&mut HookRecords, &[u8]);

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Seek, SeekFrom, Write};

    const RESULT: &str = r#"{"type":"ArchiveResult","status":"succeeded","output_str":"x"}"#;

    #[test]
    fn long_output_is_read_up_to_its_bound_and_its_last_line_counts() {
        let mut file = tempfile::tempfile().unwrap();
        writeln!(file, r#"{{"type":"Tag","name":"first"}}"#).unwrap();
        // A hole: the file takes no space.
        file.seek(SeekFrom::Start(OUTPUT_MAX)).unwrap();
        writeln!(file, "\n{RESULT}").unwrap();
        let mut records = HookRecords::default();
        records.read_up_to(&file, 4096, HookRecords::take).unwrap();
        assert_eq!(std::mem::take(&mut records.tags).into_names(), ["first"]);
        assert!(records.result.is_some());
        let length = file.metadata().unwrap().len();
        assert_eq!(records.unread, length - 4096 - TAIL_MAX);
        let remark = records.left_out().remark().unwrap();
        assert!(remark.ends_with(" bytes of output"), "{remark}");
    }

    #[test]
    fn whole_output_below_the_bound_is_read_once() {
        let mut file = tempfile::tempfile().unwrap();
        let tag = |n: u32| format!("{{\"type\":\"Tag\",\"name\":\"t{n}\"}}\n");
        (0..9).for_each(|n| file.write_all(tag(n).as_bytes()).unwrap());
        file.write_all(RESULT.as_bytes()).unwrap();
        let mut records = HookRecords::default();
        records.read(&file, HookRecords::take).unwrap();
        assert_eq!((std::mem::take(&mut records.tags).into_names().len(), records.unread), (9, 0));
        assert!(records.result.is_some(), "the last line has no line break");
    }
}
