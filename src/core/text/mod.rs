//! Text that people write and read: sizes, time spans, corrections of misspelt names, and untrusted
//! text made safe to print. Every program uses these, so a value looks the same in a terminal, in
//! the journal and on a page.

mod clean;
mod decimal;
mod hook;
mod lines;
mod markup;
mod named;
mod problem;
mod sentences;
mod setting;
mod simhash;
mod size;
mod span;
mod suggest;

pub use clean::{clean, clean_lines, clean_to, escape_json, is_unsafe};
pub use hook::{hook_label, short_hook};
pub use lines::{is_blank, is_invisible, to_lines, trim_blanks};
pub use markup::escape_markup;
pub use named::named;
pub use problem::{Location, Problem};
pub use sentences::{TextChange, text_change};
pub use setting::is_value_name;
pub use simhash::{simhash, similarity};
pub use size::{SIZE_ALLOWED, exact_size, human_size, parse_size};
pub use span::{SPAN_ALLOWED, exact_span, human_span, parse_span};
pub use suggest::{did_you_mean, similar};
