//! Output: text, tables, progress bars and SVG pictures.

pub mod bookmarks;
pub mod exposition;
pub mod listing;
pub mod progress;
pub mod redraw;
pub mod rows;
pub mod style;
pub mod svg;
pub mod table;
pub mod text;
