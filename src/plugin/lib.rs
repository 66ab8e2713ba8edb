//! Plugins: names, discovery, configuration, environment, records.
//!
//! Two generations of one contract are served side by side: the hooks of the PyPI package
//! abx-plugins (families BinaryRequest, CrawlSetup, Snapshot) and those of older ArchiveBox
//! releases (Binary, Crawl, CrawlEnd, Snapshot). The family in a hook's file name tells them apart.
//!
//! Everything here is pure but for [`discover`] (reads plugin directories) and [`output`] (reads
//! a hook's output directory). Nothing here starts a process or knows about systemd.

pub mod catalogue;
pub mod contract;
pub mod files;
pub mod programs;
pub mod settings;

#[cfg(any(test, feature = "sample"))]
pub mod sample;

pub use catalogue::name::{Event, HookName, Mode, step};
pub use catalogue::schema::{Property, RequiredBinary, Schema};
pub use catalogue::select::{Programs, Selected, Selection, Skip, UnknownPlugin, hooks_of, select};
pub use catalogue::trust::Trust;
pub use catalogue::{Catalogue, Hook, Plugin, Problem};
pub use contract::arguments::{BinaryRequest, Target, argv, request_argv};
pub use contract::environment::{Context, Places, environment};
pub use contract::lines::LineReader;
pub use contract::record::{ArchiveResult, ChildSnapshot, Record, Status, parse_line};
pub use files::beneath::Directory;
pub use files::output::{OutputFile, scan};
pub use settings::crawl_limits::{CrawlLimits, Used};
pub use settings::values::{Layers, Values, resolve, timeout};
