//! The index as its program uses it.

mod bounds;
mod property;
mod sample;
mod search;
