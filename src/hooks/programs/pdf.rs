//! `pdf`: the page printed, in `output.pdf`.

use crate::chromium;
use crate::chromium::MOST;
use crate::process::invocation::Invocation;
use crate::process::program::Runner;
use crate::process::record::{Finding, progress};
use crate::{Outcome, page};

/// Prints the page and checks that it is a PDF.
pub fn run(it: &Invocation) -> Outcome {
    let mut runner = Runner::new(it.budget())?;
    progress("printing with chromium");
    let printed = chromium::of_page(it, &mut runner, MOST, async |view| view.pdf(MOST).await);
    let (pdf, navigation) = printed?;
    if !is_pdf(&pdf) {
        let size = pdf.len();
        let reason = format!("chromium made a broken PDF ({size} bytes)");
        return Err(Finding::failed(reason));
    }
    page::write("output.pdf", &pdf)?;
    Ok(Finding::succeeded("output.pdf").with_note(navigation.note))
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
