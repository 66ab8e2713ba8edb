//! One hook as a process: its input, the programs it runs, its record.

pub mod capture;
pub mod credentials;
pub mod exit;
pub mod files;
pub mod finding;
pub mod invocation;
pub mod network;
pub mod program;
pub mod reach;
pub mod scratch;
pub mod settings;
