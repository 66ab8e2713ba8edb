//! `pdf`: saves the page as a PDF in `output.pdf`.

use crate::chromium::view;
use crate::chromium::view::glyphs;
use crate::chromium::view::{PAGE_MAX_BYTES, TabView};
use crate::process::capture::OutputLimits;
use crate::process::exit::ExitReason;
use crate::process::files;
use crate::process::finding::Outcome;
use crate::process::finding::{Finding, progress};
use crate::process::invocation::Invocation;
use crate::process::program::ProgramRunner;
use serde_json::{Value, json};
use std::process::Command;
use std::time::Duration;

/// Widest paper in pixels.
const PAPER_MAX_WIDTH: u32 = 14_400;

/// Words on the screen for each word on paper from which on a style sheet for print hides the page.
/// Those that hide menus alone leave more: of 300 pages of documentation, a tenth and more.
const HIDDEN_MIN: u64 = 10;

/// Percentage of the letters on paper, and of those on the screen, below which the PDF lacks a part
/// of the text. Style sheets for print may hide menus.
const PAPER_MIN_PERCENT: u64 = 80;
const SCREEN_MIN_PERCENT: u64 = 50;
/// Letters of a page from which on its PDF is compared.
const COMPARED_MIN_LETTERS: u64 = 20;
/// Time limit of pdftotext. A PDF that takes longer is not compared.
const COMPARE_TIMEOUT: Duration = Duration::from_secs(10);
/// Most text of a PDF, in bytes. A PDF with more is not compared.
const TEXT_MAX_BYTES: usize = 32 << 20;

/// Prints the page, checks that the PDF is complete, and compares its text with that of the page.
pub fn run(invocation: &Invocation) -> Outcome {
    let mut runner = ProgramRunner::new(invocation.budget())?;
    progress("printing with chromium");
    let printed = view::with_page(invocation, &mut runner, PAGE_MAX_BYTES, print);
    let (printed, navigation) = printed?;
    let mut pdf = printed.pdf;
    if !is_pdf(&pdf) {
        let size = pdf.len();
        let reason = format!("chromium returned an incomplete PDF ({size} bytes)");
        return Err(Finding::failed(reason));
    }
    blank_dates(&mut pdf);
    files::write("output.pdf", &pdf)?;
    let saved = saved_letters(&mut runner);
    let [missing, left_out] = saved.map(|saved| printed.letters.missing(saved)).unwrap_or_default();
    let [as_on_screen, cut] = printed.notes;
    Ok(Finding::succeeded("output.pdf").lacking([cut, printed.fonts, missing]).with_notes([
        left_out,
        navigation.note,
        as_on_screen,
    ]))
}

/// Replaces the times at which chromium printed by spaces, so that the PDF of a page that is the same is the same.
/// The result has the time. Dates are optional (ISO 32000-1, 14.3.3), and no offset in the file changes.
fn blank_dates(pdf: &mut [u8]) {
    for key in [&b"\n/CreationDate (D:"[..], b"\n/ModDate (D:"] {
        let Some(at) =
            pdf[..pdf.len().min(INFO_MAX_BYTES)].windows(key.len()).position(|part| part == key)
        else {
            continue;
        };
        let value = &pdf[at + key.len()..];
        let length = value.iter().position(|byte| !b"0123456789+-'Z".contains(byte));
        if let Some(length) = length.filter(|length| value[*length] == b')') {
            pdf[at + 1..=at + key.len() + length].fill(b' ');
        }
    }
}

/// Number of letters and digits in `output.pdf`. `None` if pdftotext is not installed, fails, or
/// exceeds [`COMPARE_TIMEOUT`] or [`TEXT_MAX_BYTES`].
fn saved_letters(runner: &mut ProgramRunner) -> Option<u64> {
    let mut command = Command::new("pdftotext");
    command.args(["-q", "-enc", "UTF-8", "output.pdf", "-"]);
    let limits = OutputLimits { output: TEXT_MAX_BYTES, ..OutputLimits::default() };
    let reserve = runner.remaining().saturating_sub(COMPARE_TIMEOUT);
    let read = runner.run_before(reserve, &mut command, "poppler-utils", limits);
    let read = read.ok().filter(|read| read.exit == ExitReason::Exited(0))?;
    let text = String::from_utf8_lossy(&read.output);
    Some(text.chars().filter(|c| c.is_alphanumeric()).count() as u64)
}

/// Bytes at the begin of a PDF in which chromium writes title and dates.
const INFO_MAX_BYTES: usize = 64 << 10;

struct Letters {
    screen: u64,
    /// In the layout that was printed.
    paper: u64,
}

impl Letters {
    /// Remarks on a PDF that has `saved` letters: that it lacks a part of the text, or that the page prints less
    /// than it shows.
    fn missing(&self, saved: u64) -> [Option<String>; 2] {
        let Letters { screen, paper } = *self;
        if screen < COMPARED_MIN_LETTERS {
            [None, None]
        } else if saved * 100 < paper * PAPER_MIN_PERCENT {
            [Some(format!("the PDF has {saved} of {screen} letters of the page")), None]
        } else if saved * 100 < screen * SCREEN_MIN_PERCENT {
            [None, Some(format!("the style sheet for print shows {saved} of {screen} letters"))]
        } else {
            [None, None]
        }
    }
}

struct Printed {
    pdf: Vec<u8>,
    letters: Letters,
    notes: [Option<String>; 2],
    fonts: Option<String>,
}

/// Prints the page. If its style sheet for print hides the text, prints what the screen shows, and
/// returns a remark about that. Boxes in which the page scrolls are as high as their content
/// meanwhile, and what stays in view is printed once instead of on each sheet, over the text.
async fn print(view: &TabView) -> Result<Printed, Finding> {
    let turned = view.evaluate("() => [innerWidth, innerHeight, turnedHeight()]", &[]).await?;
    let turned = serde_json::from_value::<[u32; 3]>(turned).ok().filter(|[.., high]| *high > 0);
    let on_screen = Layout::from(view.evaluate(MEASURE, &[]).await?);
    view.set_media("print").await?;
    let on_paper = Layout::from(view.evaluate(MEASURE, &[]).await?);
    let hides_text = on_screen.words > 4 && on_paper.words * HIDDEN_MIN < on_screen.words;
    let note = hides_text.then(|| {
        let (paper, screen) = (on_paper.words, on_screen.words);
        format!(
            "printed as on the screen: the style sheet for print shows {paper} of {screen} words"
        )
    });
    view.set_media(if hides_text { "screen" } else { "" }).await?;
    let layout = if hides_text { &on_screen } else { &on_paper };
    let mut width = layout.width;
    let is_moved = layout.boxes > 0 || layout.fixed > 0;
    if is_moved {
        let spread = view.evaluate(SPREAD, &[json!(true)]).await?;
        width = width.max(u32::try_from(spread.as_u64().unwrap_or_default()).unwrap_or(u32::MAX));
    }
    if let Some([width, _, high]) = turned {
        // All of it is in view now.
        view.resize((width, high)).await?;
        view.evaluate(view::REACTED, &[]).await?;
    }
    // What grows to a side is continued on further sheets.
    let is_cut = width > PAPER_MAX_WIDTH && !layout.is_sideways;
    let cut = is_cut.then(|| format!("cut at {PAPER_MAX_WIDTH} of {width} pixels in width"));
    let width = (width > layout.viewport_width).then(|| width.min(PAPER_MAX_WIDTH));
    let pdf = view.pdf(PAGE_MAX_BYTES, width).await;
    if is_moved {
        view.evaluate(SPREAD, &[json!(false)]).await?;
    }
    view.set_media("").await?;
    if let Some([width, height, _]) = turned {
        view.resize((width, height)).await?;
    }
    Ok(Printed {
        pdf: pdf?,
        letters: Letters { screen: on_screen.letters, paper: layout.letters },
        notes: [note, cut],
        fonts: glyphs::missing_fonts(view).await,
    })
}

struct Layout {
    /// Number of visible words.
    words: u64,
    /// Number of visible letters and digits.
    letters: u64,
    width: u32,
    viewport_width: u32,
    /// Whether the page grows to a side.
    is_sideways: bool,
    /// Number of boxes in which large parts of the page scroll.
    boxes: u64,
    /// Number of elements that stay in view while the page scrolls.
    fixed: u64,
}

impl From<Value> for Layout {
    fn from(value: Value) -> Layout {
        let number = |name: &str| value[name].as_u64().unwrap_or_default();
        let pixels = |name: &str| u32::try_from(number(name)).unwrap_or(u32::MAX);
        Layout {
            words: number("words"),
            letters: number("letters"),
            width: pixels("width"),
            viewport_width: pixels("viewport"),
            is_sideways: value["isSideways"] == json!(true),
            boxes: number("boxes"),
            fixed: number("fixed"),
        }
    }
}

const MEASURE: &str = r#"() => {
  const page = document.scrollingElement || document.documentElement;
  const text = (document.documentElement || {}).innerText || "";
  let fixed = 0;
  for (const element of document.querySelectorAll("body, body *")) {
    if (getComputedStyle(element).position === "fixed") fixed++;
  }
  return {
    words: (text.slice(0, 4000000).match(/\S+/g) || []).length,
    letters: (text.slice(0, 4000000).match(/[\p{L}\p{N}]/gu) || []).length,
    width: page && !hidesSides() ? page.scrollWidth : 0,
    viewport: innerWidth,
    isSideways: Boolean(document.documentElement) && growsSideways(document.documentElement),
    boxes: scrollBoxes(/auto|scroll|hidden/, 1 / 3).length,
    fixed,
  };
}"#;

/// Lets boxes that scroll be as high as what is in them, or as wide, puts what stays in view where it is on
/// the first sheet, and undoes that. Returns the width of the page if a box became wider.
const SPREAD: &str = r#"(on) => {
  const mark = "data-archivist-style";
  if (!on) {
    for (const element of document.querySelectorAll(`[${mark}]`)) {
      const style = element.getAttribute(mark);
      if (style === "-") element.removeAttribute("style");
      else element.setAttribute("style", style.slice(1));
      element.removeAttribute(mark);
    }
    return;
  }
  const spread = new Set(), wide = new Set();
  const fixed = [...document.querySelectorAll("body, body *")]
    .filter((element) => getComputedStyle(element).position === "fixed");
  for (const element of scrollBoxes(/auto|scroll|hidden/, 1 / 3)) {
    const isWide = growsSideways(element);
    for (let at = element; at; at = at.parentElement) {
      spread.add(at);
      if (isWide) wide.add(at);
    }
  }
  const keep = (element) => {
    const style = element.getAttribute("style");
    element.setAttribute(mark, style === null ? "-" : "+" + style);
  };
  for (const element of fixed) {
    if (spread.has(element)) continue;
    keep(element);
    element.style.setProperty("position", "absolute", "important");
  }
  for (const element of spread) {
    keep(element);
    const [side, size] = wide.has(element) ? ["width", "max-content"] : ["height", "auto"];
    element.style.setProperty(side, size, "important");
    element.style.setProperty("max-" + side, "none", "important");
    element.style.setProperty("overflow", "visible", "important");
    if (/fixed|absolute/.test(getComputedStyle(element).position)) element.style.setProperty("position", "static", "important");
  }
  return wide.size > 0 ? (document.scrollingElement || document.documentElement).scrollWidth : 0;
}"#;

/// Whether the bytes begin with a PDF header and end with its end mark.
fn is_pdf(bytes: &[u8]) -> bool {
    bytes.starts_with(b"%PDF-") && bytes.trim_ascii_end().ends_with(b"%%EOF")
}

#[cfg(test)]
mod tests {
    use super::{Letters, blank_dates, is_pdf};

    #[test]
    fn pdf_of_the_same_page_has_no_time() {
        let printed = |date: &str| {
            format!(
                "%PDF-1.4\n1 0 obj\n<</Title (A \\(D:1\\))\n/CreationDate (D:{date})\n/ModDate (D:{date})>>\nendobj\n"
            )
        };
        let blanked = |date: &str| {
            let mut pdf = printed(date).into_bytes();
            blank_dates(&mut pdf);
            String::from_utf8(pdf).unwrap()
        };
        let first = blanked("20261129222149+00'00'");
        assert_eq!(first, blanked("20261130010203+00'00'"));
        let (key, other) = (" ".repeat(39), " ".repeat(34));
        let expected =
            format!("%PDF-1.4\n1 0 obj\n<</Title (A \\(D:1\\))\n{key}\n{other}>>\nendobj\n");
        assert_eq!(first, expected);
        // What is no date stays.
        assert_eq!(blanked("tomorrow"), printed("tomorrow"));
        assert_eq!(blanked("2026"), blanked("2027"));
        let mut cut = printed("20261129222149").into_bytes()[..60].to_vec();
        let before = cut.clone();
        blank_dates(&mut cut);
        assert_eq!(cut, before);
    }

    #[test]
    fn incomplete_pdf_is_refused() {
        assert!(is_pdf(b"%PDF-1.4\n1 0 obj\n%%EOF\n"));
        assert!(!is_pdf(b"%PDF-1.4\n1 0 obj\n"));
        assert!(!is_pdf(b"<html>%%EOF"));
    }

    #[test]
    fn a_pdf_without_a_part_of_the_text_is_named() {
        let note = |screen, paper, saved| {
            let letters = Letters { screen, paper };
            letters.missing(saved).into_iter().flatten().collect::<String>()
        };
        assert_eq!(note(100, 100, 79), "the PDF has 79 of 100 letters of the page");
        assert_eq!(note(400, 400, 0), "the PDF has 0 of 400 letters of the page");
        assert_eq!(note(400, 100, 100), "the style sheet for print shows 100 of 400 letters");
        assert_eq!(note(400, 200, 200), "");
        assert_eq!(note(100, 100, 80), "");
        assert_eq!(note(100, 100, 250), "");
        assert_eq!(note(19, 19, 0), "");
    }
}
