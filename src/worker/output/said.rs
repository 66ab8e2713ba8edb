//! What a hook says: the records on its standard output, as much of them as a report holds.

use archivist_core::model::{TAG_MAX, TEXT_MAX, Tags};
use archivist_plugin::contract::record::{Binary, Machine, SonicDaemonStart, parse_child};
use archivist_plugin::{ArchiveResult, ChildSnapshot, LineReader, Record, parse_line};
use archivist_shared::bus::documents::bounds::{Children, DERIVED_MAX, LeftOut, program};
use archivist_shared::bus::documents::work::{Child, Derived, Found, SonicWish};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// What the records of one stream said.
#[derive(Debug, Default)]
pub struct Said {
    pub result: Option<ArchiveResult>,
    pub children: Children,
    pub tags: Tags,
    /// The program of this name is asked for.
    pub wanted: Option<String>,
    pub binary: Option<Found>,
    pub derived: Derived,
    /// Settings, programs and wishes that there was no room for.
    pub dropped: u64,
}

impl Said {
    /// What was said beyond what is kept.
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
            Some(Record::SonicDaemonStart(wanted)) => {
                let SonicDaemonStart {
                    config_path,
                    host,
                    port,
                    ..
                } = wanted;
                self.derived.sonic = Some(SonicWish {
                    config_path,
                    host,
                    port,
                });
            }
            None => {}
        }
    }

    /// Whether these are worth keeping is not for us to say, but how much of them.
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

    /// The first record with the name that was asked for and a path is the one. Of a hook that
    /// nobody asked for a program, each is a word on what it found.
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
        match &self.wanted {
            Some(wanted) if *wanted == found.name && self.binary.is_none() => {
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

    /// A provider that asks for another one has its answer in its own order.
    fn request(&mut self, binary: &Binary) {
        let wanted = &mut self.derived.wanted;
        if self.wanted.is_none() && wanted.len() < DERIVED_MAX && binary.name.len() <= TAG_MAX {
            let providers = binary
                .raw
                .get("binproviders")
                .and_then(|list| list.as_str());
            let providers = providers.filter(|list| list.len() <= TAG_MAX);
            wanted.insert(
                binary.name.clone(),
                providers.unwrap_or_default().to_owned(),
            );
        }
    }

    /// A line of a file of child pages, which need not say what it is.
    pub fn take_child(&mut self, line: &[u8]) {
        if let Some(child) = parse_child(line) {
            self.child(child);
        }
    }

    /// Reads a file from its start, in bounded memory.
    pub fn read(&mut self, file: &File, take: fn(&mut Said, &[u8])) -> std::io::Result<()> {
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
