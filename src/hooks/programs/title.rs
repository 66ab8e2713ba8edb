//! `title`: writes the page's title to `title.txt` and returns it as the result.

use crate::page::{Document, html};
use crate::process::finding::Finding;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, page};

/// Finds the page and writes its title.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let title = match page::find(invocation, &mut runner)? {
        Document::Page(page) => html::title(&page.html),
        Document::Listing(listing, _) => listing.title,
    };
    match title {
        Some(title) => {
            page::write("title.txt", format!("{title}\n").as_bytes())?;
            Ok(Finding::succeeded(title))
        }
        None => Ok(Finding::noresults("the page has no title")),
    }
}
