//! Plugins: names, discovery, configuration, environment, records.
//!
//! Two generations of the hook contract are supported: that of the PyPI package abx-plugins
//! (families BinaryRequest, CrawlSetup, Snapshot) and that of older ArchiveBox releases (families
//! Binary, Crawl, CrawlEnd, Snapshot). The family in a hook's file name selects the generation.
//!
//! Only [`catalogue::discover`] and [`catalogue::trust`] read plugin directories, and only
//! [`files`] accesses output directories; everything else is pure. Nothing here starts a process or
//! knows about systemd.

pub mod catalogue;
pub mod contract;
pub mod files;
pub mod programs;
pub mod settings;

#[cfg(any(test, feature = "sample"))]
pub mod sample;

pub use catalogue::name::{HookFamily, HookName, Mode, step};
pub use catalogue::schema::{Property, Schema};
pub use catalogue::select::{Selected, Selection, Skip, UnknownPlugin, hooks_of, select};
pub use catalogue::selection::knows;
pub use catalogue::trust::Trust;
pub use catalogue::{Catalogue, Hook, PathProblem, Plugin};
pub use contract::arguments::{BinaryRequest, HookTarget, argv, request_argv};
pub use contract::environment::{HookContext, HookDirectories, environment};
pub use contract::lines::{LINE_MAX_BYTES, LineReader};
pub use contract::record::{ArchiveResult, ChildSnapshot, Record, ResultStatus, parse_line};
pub use files::beneath::Directory;
pub use files::output::{OutputFile, scan};
pub use programs::binary::Programs;
pub use programs::requirement::Requirement;
pub use settings::crawl_limits::{CrawlLimits, Used};
pub use settings::values::{Layers, Values, resolve, timeout};
