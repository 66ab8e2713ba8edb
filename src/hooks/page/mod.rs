//! Documents of the web as values: what a page, a feed, a style sheet or a saved file says.

pub mod charset;
pub mod content_type;
pub mod declaration;
pub mod framed;
#[cfg(test)]
mod fuzz;
pub mod html;
pub mod listing;
pub mod response;
pub mod retry_after;
pub mod saved;
pub mod secrets;
pub mod sitemap;
pub mod srcset;
pub mod style;
pub mod suffix;
mod tags;
mod xml;

pub use archivist_warc::coding;
