//! `title`: the page's title, in `title.txt` and as the result.

use crate::page::html;
use crate::process::invocation::Invocation;
use crate::process::program::Runner;
use crate::process::record::Finding;
use crate::{Outcome, page};

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
