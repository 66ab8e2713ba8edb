//! SVG pictures without scripts.

use crate::display::text;
use archivist_core::text::{clean, escape_markup};
use std::fmt::Write;

/// Longest text in a picture, in characters.
const TEXT_MAX: usize = 400;

/// Returns untrusted text for an SVG element: markup is escaped, characters that XML forbids or
/// that reorder text become U+FFFD, and long text is cut.
pub fn escape(text: &str) -> String {
    let text = clean(&text::cut_middle(text, TEXT_MAX));
    escape_markup(&text.replace(['\u{fffe}', '\u{ffff}'], "\u{fffd}"))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture under construction. Lengths are in pixels; texts are escaped; `class` refers to the
/// style sheet.
pub struct Svg(String);

impl Svg {
    /// Starts a picture. `style` is CSS; class `paper` is the background.
    pub fn new(title: &str, width: f64, height: f64, style: &str) -> Svg {
        Svg(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
             height=\"{height}\" role=\"img\">\n<title>{}</title>\n<style>{style}</style>\n\
             <rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n",
            escape(title)
        ))
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        let ((x1, y1), (x2, y2)) = (from, to);
        let _ = writeln!(
            self.0,
            "<line class=\"{class}\" x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\"/>"
        );
    }

    /// `at` is the upper left corner.
    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), radius: f64) {
        let ((x, y), (width, height)) = (at, size);
        let rounded = if radius > 0.0 { format!(" rx=\"{radius}\"") } else { String::new() };
        let _ = writeln!(
            self.0,
            "<rect class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\"{rounded}/>"
        );
    }

    pub fn circle(&mut self, class: &str, at: (f64, f64), radius: f64) {
        let (x, y) = at;
        let _ = writeln!(
            self.0,
            "<circle class=\"{class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\"/>"
        );
    }

    pub fn polyline(&mut self, class: &str, points: impl Iterator<Item = (f64, f64)>) {
        let pairs: Vec<_> = points.map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let points = pairs.join(" ");
        let _ = writeln!(self.0, "<polyline class=\"{class}\" points=\"{points}\"/>");
    }

    pub fn text(&mut self, class: &str, at: (f64, f64), anchor: Anchor, text: &str) {
        if text.is_empty() {
            return;
        }
        let anchor = match anchor {
            Anchor::Start => "",
            Anchor::Middle => " text-anchor=\"middle\"",
            Anchor::End => " text-anchor=\"end\"",
        };
        let class = match class {
            "" => String::new(),
            class => format!(" class=\"{class}\""),
        };
        let ((x, y), text) = (at, escape(text));
        let _ = writeln!(self.0, "<text{class} x=\"{x:.1}\" y=\"{y:.1}\"{anchor}>{text}</text>");
    }

    /// Draws text that reads upwards, centred at `at`.
    pub fn upward(&mut self, at: (f64, f64), text: &str) {
        let ((x, y), text) = (at, escape(text));
        let _ = writeln!(
            self.0,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"middle\" transform=\"rotate(-90 {x:.1} {y:.1})\">{text}</text>"
        );
    }

    /// Groups what `draw` adds; `tip` appears while the pointer is on the group.
    pub fn group(&mut self, tip: &str, draw: impl FnOnce(&mut Svg)) {
        let _ = writeln!(self.0, "<g><title>{}</title>", escape(tip));
        draw(self);
        self.0.push_str("</g>\n");
    }

    /// Defines the clip path `id`, for `clip-path:url(#id)` in the style.
    pub fn clip(&mut self, id: &str, at: (f64, f64), size: (f64, f64)) {
        let _ = write!(self.0, "<clipPath id=\"{id}\">");
        self.rect("", at, size, 0.0);
        self.0.push_str("</clipPath>\n");
    }

    pub fn finish(mut self) -> String {
        self.0.push_str("</svg>\n");
        self.0
    }
}

/// Returns the lowest of 1, 2, 5, 10, 20 … that is at least `step`.
pub fn nice(step: f64) -> f64 {
    let power = 10f64.powf(step.max(1.0).log10().floor());
    let times = [1.0, 2.0, 5.0, 10.0].into_iter();
    times.map(|n| n * power).find(|n| *n >= step).unwrap_or(step)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn steps_are_round_numbers() {
        for (step, want) in [(0.2, 1.0), (7.0, 10.0), (21.0, 50.0), (250.0, 500.0)] {
            assert_eq!(nice(step), want, "{step}");
        }
    }

    proptest! {
        /// No text becomes markup, or leaves the ground of XML.
        #[test]
        fn no_text_becomes_markup(text in "\\PC{0,40}|.{0,40}|[<>&\"\u{0}-\u{1f}\u{202e}\u{fffe}]{0,40}") {
            let mut svg = Svg::new(&text, 10.0, 10.0, "");
            svg.group(&text, |svg| svg.text("", (0.0, 0.0), Anchor::End, &text));
            let out = svg.finish();
            let tags = if text.is_empty() { 11 } else { 13 };
            prop_assert_eq!(out.matches('<').count(), tags);
            prop_assert_eq!(out.matches('>').count(), tags);
            let forbidden = |c: char| (c.is_control() && c != '\n') || "\u{fffe}\u{ffff}\u{202e}".contains(c);
            prop_assert!(!out.contains(forbidden));
        }
    }
}
