//! `pdf`: saves the page as a PDF in `output.pdf`.

use crate::chromium;
use crate::chromium::PAGE_MAX_BYTES;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use crate::{Outcome, page};

/// Prints the page and checks that the PDF is complete.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("printing with chromium");
    let printed = chromium::with_page(invocation, &mut runner, PAGE_MAX_BYTES, async |view| {
        view.pdf(PAGE_MAX_BYTES).await
    });
    let (pdf, navigation) = printed?;
    if !is_pdf(&pdf) {
        let size = pdf.len();
        let reason = format!("chromium returned an incomplete PDF ({size} bytes)");
        return Err(Finding::failed(reason));
    }
    page::write("output.pdf", &pdf)?;
    Ok(Finding::succeeded("output.pdf").with_note(navigation.note))
}

/// Whether the bytes begin with a PDF header and end with its end mark.
fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-") && bytes.trim_ascii_end().ends_with(b"%%EOF")
}

#[cfg(test)]
mod tests {
    use super::is_pdf;

    #[test]
    fn incomplete_pdf_is_refused() {
        assert!(is_pdf(b"%PDF-1.4\n1 0 obj\n%%EOF\n"));
        assert!(!is_pdf(b"%PDF-1.4\n1 0 obj\n"));
        assert!(!is_pdf(b"<html>%%EOF"));
    }
}
