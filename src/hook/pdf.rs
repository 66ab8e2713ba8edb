//! `pdf`: the page printed, in `output.pdf`.

use super::Outcome;
use super::chromium::{self, MOST_HTML, file_option, window};
use super::invocation::Invocation;
use super::record::{Finding, progress};

const PART: &str = ".part.pdf";

/// Prints the page and checks that it is a PDF.
pub fn run(it: &Invocation) -> Outcome {
    progress("printing with chromium");
    let wanted = [
        file_option("print-to-pdf", PART)?,
        "--no-pdf-header-footer".to_string(),
    ];
    let window = window(&it.settings.text("RESOLUTION"));
    let rendered = chromium::render(it, &wanted, &window, MOST_HTML)
        .inspect_err(|_| chromium::discard(PART))?;
    chromium::keep(PART, "output.pdf", is_pdf)?;
    let finding = Finding::succeeded("output.pdf");
    Ok(match rendered.note {
        Some(note) => finding.with("note", note),
        None => finding,
    })
}

/// A PDF from its first line to its end mark.
fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-") && bytes.trim_ascii_end().ends_with(b"%%EOF")
}

#[cfg(test)]
mod tests {
    use super::is_pdf;

    #[test]
    fn half_a_pdf_is_none() {
        assert!(is_pdf(b"%PDF-1.4\n1 0 obj\n%%EOF\n"));
        assert!(!is_pdf(b"%PDF-1.4\n1 0 obj\n"));
        assert!(!is_pdf(b"<html>%%EOF"));
    }
}
