//! Unit names, specifications of units, and their properties. Pure.

mod names;
mod properties;
mod spec;

pub use names::{Names, Parsed, UnitKind};
pub use properties::{Property, properties};
pub use spec::{AddressFilter, CheckSpec, HookSpec, Network, Stdio, Subject, UnitSpec, WorkerSpec};
