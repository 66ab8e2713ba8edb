//! Workers and their hooks, from the record to the end of the unit.

pub mod begin;
pub mod calls;
pub mod disk;
pub mod ends;
pub mod persona;
pub mod polite;
pub mod pressure;
pub mod run_result;
pub mod units;
pub mod way_out;
