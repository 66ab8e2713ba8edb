//! The programs that plugins require: inspecting and installing them.

pub mod derived;
pub mod inspected;
pub mod install;

pub(crate) use derived::{take_derived, take_programs, take_requests, why_wanted};
#[cfg(test)]
pub(crate) use inspected::seen;
pub(crate) use inspected::{inspect, inspect_all};
pub(crate) use install::{
    Install, binaries, is_brought, layer_program_env, note_by_hand, note_skipped, retry_install,
    take_binary,
};
