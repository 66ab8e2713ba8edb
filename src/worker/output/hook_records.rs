//! Collects the records on a hook's standard output, up to the bounds of a report.

use archivist_core::model::{TAG_MAX, TEXT_MAX, Tags};
use archivist_plugin::contract::record::{Binary, Machine, SonicDaemonStart, parse_child};
use archivist_plugin::{ArchiveResult, ChildSnapshot, LineReader, Record, parse_line};
use archivist_shared::bus::documents::bounds::{Children, DERIVED_MAX, LeftOut, program};
use archivist_shared::bus::documents::work::{Child, Derived, Found, SonicWish};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Records of one run.
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
}

impl HookRecords {
    /// Number of records above the bounds.
    pub fn left_out(&self) -> LeftOut {
        LeftOut {
            pages: self.children.dropped,
            tags: self.tags.dropped + self.children.dropped_tags,
            others: self.dropped,
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
                let SonicDaemonStart {
                    config_path,
                    host,
                    port,
                    ..
                } = requested;
                self.derived.sonic = Some(SonicWish {
                    config_path,
                    host,
                    port,
                });
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
        let ChildSnapshot {
            url,
            title,
            tags,
            bookmarked_at,
            ..
        } = child;
        self.children.push(Child {
            url,
            title,
            bookmarked_at,
            tags,
        });
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
            requests.insert(
                binary.name.clone(),
                providers.unwrap_or_default().to_owned(),
            );
        }
    }

    /// Processes a line of a file of child pages, where the field `type` is optional.
    pub fn take_child(&mut self, line: &[u8]) {
        if let Some(child) = parse_child(line) {
            self.child(child);
        }
    }

    /// Reads a file from its start in bounded memory.
    pub fn read(&mut self, file: &File, take: fn(&mut HookRecords, &[u8])) -> std::io::Result<()> {
        let mut lines = LineReader::default();
        let (mut buffer, mut offset) = (vec![0; 64 * 1024], 0);
        loop {
            let length = file.read_at(&mut buffer, offset)?;
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
