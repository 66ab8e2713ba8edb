//! Declarations of pools and watches (`NAME.pool`, `NAME.watch`): finding, reading and validating
//! them.

/// What the manual says about a key.
pub struct KeyText {
    /// Plain text, in paragraphs.
    pub text: &'static str,
    /// The default; empty if only the text can say what it is.
    pub default: fn() -> String,
}

/// Defines `KEYS` and `TEXTS` of a section from one table: `Name = default;`, with the text of the
/// key as doc comment. The texts are a table of their own, so that only programs that print them
/// contain them.
#[macro_export]
macro_rules! declared_keys {
    ($($(#[doc = $text:literal])+ $name:ident $(= $default:expr)?;)*) => {
        /// All keys, without '='.
        pub const KEYS: &[&str] = &[$(stringify!($name)),*];

        /// The text of each key, in the order of [`KEYS`].
        pub const TEXTS: &[$crate::declare::KeyText] = &[$($crate::declare::KeyText {
            text: concat!($($text, "\n"),+),
            default: || <[String]>::concat(&[$(ToString::to_string(&$default))?]),
        }),*];
    };
}

pub mod declaration;
pub mod files;
pub mod reader;
pub mod url_file;
pub mod watch;

pub use declaration::{Declaration, Kind, NAME_ALLOWED};
pub use reader::Reader;
