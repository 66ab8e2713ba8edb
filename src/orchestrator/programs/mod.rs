//! The programs that plugins require: inspecting and installing them.

pub mod derived;
pub mod inspected;
pub mod install;

pub(crate) use derived::{take_derived, take_programs, take_requests, why_wanted};
pub(crate) use inspected::{inspect, inspected};
pub(crate) use install::{
    binaries, install, is_brought, layer_program_env, note_by_hand, note_skipped, retry_install,
    take_binary,
};
