//! Unit names, specifications of units, and their properties. Pure.

mod names;
mod properties;
mod spec;

pub use names::{Names, UnitKind};
pub use properties::{Property, properties};
pub use spec::WorkerSpec;
pub use spec::{AddressFilter, CheckSpec, HookSpec, Network, Stdio, StoreSpec, Subject, UnitSpec};
