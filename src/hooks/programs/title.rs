//! `title`: writes the page's title to `title.txt` and returns it as the result.

use crate::page::html;
use crate::process::files;
use crate::process::finding::Finding;
use crate::process::finding::Outcome;
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::source;
use crate::source::Document;

pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    let title = match source::find(invocation, &mut runner)? {
        Document::Page(page) => html::title(&page.html),
        Document::Listing(listing, _) => listing.title,
    };
    match title {
        Some(title) => {
            files::write("title.txt", format!("{title}\n").as_bytes())?;
            Ok(Finding::succeeded(title))
        }
        None => Ok(Finding::noresults("the page has no title")),
    }
}
