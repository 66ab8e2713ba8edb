//! Output: text, tables, progress and SVG pictures.

pub mod bookmarks;
pub mod exposition;
pub mod listing;
#[path = "../progress/bar.rs"]
pub mod progress;
pub mod rows;
pub mod screen;
pub mod style;
pub mod svg;
pub mod table;
pub mod text;
