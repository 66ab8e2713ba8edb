//! Documents that are no web pages, and the programs of Debian that read them.

use super::TEXT_MAX_BYTES;
use crate::page::content_type::essence;
use crate::page::html;
use crate::process::capture::OutputLimits;
use crate::process::exit::ExitReason;
use crate::process::files::read_start;
use crate::process::program::ProgramRunner;
use archivist_warc::PackedFiles;
use mail_parser::{MessageParser, PartType};
use std::fs::File;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// Start of a file in which its kind is looked for, in bytes.
const START_BYTES: u64 = 1024;
/// Time that is left for the other steps when a program takes long.
const RESERVE: Duration = Duration::from_secs(2);

/// A program of Debian that reads documents.
pub struct Reader {
    pub program: &'static str,
    pub package: &'static str,
    /// The documents, for users.
    pub documents: &'static str,
}

const PDFTOTEXT: Reader =
    Reader { program: "pdftotext", package: "poppler-utils", documents: "PDFs" };
const PANDOC: Reader =
    Reader { program: "pandoc", package: "pandoc", documents: "DOCX, ODT, EPUB and RTF documents" };
pub const READERS: [Reader; 2] = [PDFTOTEXT, PANDOC];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Pdf,
    /// Office Open XML text.
    Docx,
    /// OpenDocument text.
    Odt,
    Epub,
    Rtf,
    /// A message of e-mail (RFC 5322).
    Message,
}

impl Kind {
    /// The kind of a file by its content, of a message by the content type; `None` for any other.
    pub fn of(path: &Path, content_type: &str) -> Option<Kind> {
        let start = read_start(path, START_BYTES)?;
        if start.windows(5).any(|five| five == b"%PDF-") {
            return Some(Kind::Pdf);
        }
        if start.starts_with(b"{\\rtf") {
            return Some(Kind::Rtf);
        }
        if start.starts_with(b"PK\x03\x04") {
            let packed = PackedFiles::open(File::open(path).ok()?).ok()??;
            if packed.names().any(|name| name == "word/document.xml") {
                return Some(Kind::Docx);
            }
            // A file with the media type (EPUB 3.3, "OCF ZIP container"; OpenDocument 1.3, part 2, section 3.3).
            let kind = packed.read("mimetype", START_BYTES)?.ok()?;
            return match kind.trim_ascii() {
                b"application/epub+zip" => Some(Kind::Epub),
                b"application/vnd.oasis.opendocument.text" => Some(Kind::Odt),
                _ => None,
            };
        }
        (essence(content_type) == "message/rfc822").then_some(Kind::Message)
    }

    pub fn name(self) -> &'static str {
        match self {
            Kind::Pdf => "a PDF",
            Kind::Docx => "a DOCX document",
            Kind::Odt => "an ODT document",
            Kind::Epub => "an EPUB book",
            Kind::Rtf => "an RTF document",
            Kind::Message => "a message of e-mail",
        }
    }

    /// Reads the text of a file.
    ///
    /// # Errors
    /// Why there is none: a program that is missing, or its failure.
    pub fn text(
        self,
        path: &Path,
        most: u64,
        runner: &mut ProgramRunner,
    ) -> Result<String, String> {
        let (mut command, package) = match self {
            Kind::Message => return message_text(path, most),
            Kind::Pdf => {
                let mut command = Command::new(PDFTOTEXT.program);
                command.args(["-q", "-enc", "UTF-8", "-nopgbrk"]).arg(path).arg("-");
                (command, PDFTOTEXT.package)
            }
            Kind::Docx => pandoc("docx", path),
            Kind::Odt => pandoc("odt", path),
            Kind::Epub => pandoc("epub", path),
            Kind::Rtf => pandoc("rtf", path),
        };
        let limits = OutputLimits { output: TEXT_MAX_BYTES + 1, ..OutputLimits::default() };
        let program = command.get_program().display().to_string();
        match runner.run_before(RESERVE, &mut command, package, limits) {
            Ok(ended) if ended.exit == ExitReason::Exited(0) => {
                Ok(String::from_utf8_lossy(&ended.output).into_owned())
            }
            Ok(_) => Err(format!("{program} failed to read it")),
            Err(finding) => Err(finding.output_str.escape_debug().to_string()),
        }
    }
}

/// pandoc(1) with a reader, which may read no other file.
fn pandoc(from: &str, path: &Path) -> (Command, &'static str) {
    let mut command = Command::new(PANDOC.program);
    command.args(["--sandbox", "--to=plain", "--wrap=none", "--from", from]).arg(path);
    (command, PANDOC.package)
}

/// Subject, sender and text of a message.
fn message_text(path: &Path, most: u64) -> Result<String, String> {
    let bytes = read_start(path, most).ok_or("it cannot be read")?;
    let message = MessageParser::default().parse(&bytes).ok_or("it has no header")?;
    let mut lines: Vec<String> = message.subject().map(str::to_owned).into_iter().collect();
    let senders = message.from().into_iter().flat_map(|from| from.iter());
    lines.extend(
        senders.filter_map(|from| from.name.as_deref().or(from.address()).map(str::to_owned)),
    );
    for part in message.text_body.iter().filter_map(|number| message.part(*number)) {
        match &part.body {
            PartType::Text(text) => lines.push(text.clone().into_owned()),
            PartType::Html(text) => {
                let page = html::parse(text, html::PARSING_TIMEOUT);
                lines.push(super::prose::text(&page, TEXT_MAX_BYTES));
            }
            _ => {}
        }
    }
    Ok(lines.join("\n"))
}
