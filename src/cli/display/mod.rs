//! Text, tables, progress and pictures.

pub mod look;
pub mod progress;
pub mod rows;
pub mod svg;
pub mod table;
pub mod text;
