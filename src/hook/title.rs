//! `title`: the page's title, in `title.txt` and as the result.

use super::invocation::Invocation;
use super::program::Runner;
use super::record::Finding;
use super::{Outcome, html, page};

/// Finds the page and writes its title.
pub fn run(it: &Invocation) -> Outcome {
    let mut runner = Runner::new(it.budget())?;
    let page = page::find(it, &mut runner)?;
    match html::title(&page.html) {
        Some(title) => {
            page::write("title.txt", format!("{title}\n").as_bytes())?;
            Ok(Finding::succeeded(title))
        }
        None => Ok(Finding::noresults("the page has no title")),
    }
}
