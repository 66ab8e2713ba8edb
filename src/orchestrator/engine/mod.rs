//! What the orchestrator keeps between turns: settings, plugins, facts about files, and what is derived
//! from them.

pub mod commands;
pub mod crawl_plan;
pub mod directories;
pub mod environment;
pub mod fact_reader;
pub mod facts;
pub mod index;
pub mod input_files;
pub mod persona;
pub mod persona_access;
pub mod persona_files;
pub mod state;
pub mod way_out;
