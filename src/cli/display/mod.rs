//! Output: text, tables, progress and SVG pictures.

pub mod batch;
pub mod block;
pub mod bookmarks;
pub mod details;
pub mod exposition;
pub mod listing;
pub mod rows;
pub mod screen;
pub mod standard_error;
pub mod style;
pub mod svg;
pub mod table;
pub mod text;
