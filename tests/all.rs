//! Tests of the built programs, of the tree, and of several packages together. The name of a module is a filter:
//! `cargo test --test all words::`.

mod catalog;
mod check;
mod cli;
mod cli_bus;
mod fake_systemd;
mod generate;
mod golden;
mod man;
mod schema;
mod structure;
mod words;
