//! One hook as a process: its invocation, the programs it runs, its record.

pub mod invocation;
pub mod output;
pub mod program;
pub mod reach;
pub mod record;
pub mod scratch;
pub mod settings;
