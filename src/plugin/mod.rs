//! Plugins: names, discovery, configuration, environment, records.
//!
//! Two generations of one contract are served side by side: the hooks of the PyPI package
//! abx-plugins (families BinaryRequest, CrawlSetup, Snapshot) and those of older ArchiveBox
//! releases (Binary, Crawl, CrawlEnd, Snapshot). The family in a hook's file name tells them apart.
//!
//! Everything here is pure but for [`discover`] (reads plugin directories) and [`output`] (reads
//! a hook's output directory). Nothing here starts a process or knows about systemd.

pub mod allocation;
pub mod arguments;
pub mod beneath;
pub mod binaries;
pub mod binary;
pub mod catalogue;
pub mod check;
pub mod close;
mod crawl_limits;
pub mod derived;
pub mod discover;
pub mod effective;
pub mod environment;
pub mod event;
pub mod filter;
pub mod general;
pub mod install;
pub mod limit;
pub mod lines;
pub mod name;
pub mod output;
pub mod parse;
mod reader;
pub mod record;
pub mod schema;
pub mod select;
pub mod source;
pub mod tidy;
pub mod trust;
pub mod values;
pub mod verdict;
pub mod version;
mod walk;
mod wanted;

#[cfg(test)]
pub(crate) mod sample;

pub use arguments::{BinaryRequest, Target, argv, request_argv};
pub use beneath::Directory;
pub use catalogue::{Catalogue, Hook, Plugin, Problem};
pub use crawl_limits::{CrawlLimits, Used};
pub use environment::{Context, Places, environment};
pub use filter::UrlFilter;
pub use lines::LineReader;
pub use name::{Event, HookName, Mode, step};
pub use output::{OutputFile, scan};
pub use record::{ArchiveResult, ChildSnapshot, Record, Status, parse_line};
pub use schema::{Property, RequiredBinary, Schema};
pub use select::{Programs, Selected, Selection, Skip, UnknownPlugin, hooks_of, select};
pub use trust::Trust;
pub use values::{Layers, Values, resolve, timeout};
