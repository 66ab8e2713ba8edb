//! The difference of two screenshots. Rows that both have stand side by side, because a line that was
//! added to a page moves everything below it.

use super::TIMEOUT;
use super::job::say;
use crate::client::reader_files::{Caller, Wanted};
use archivist_hooks::picture::Picture;
use similar::{Algorithm, DiffOp, capture_diff_slices_deadline};
use std::io::{self, BufWriter, Read, Write};
use std::sync::Arc;
use std::time::Instant;

/// Largest screenshot in bytes.
const PICTURE_MAX_BYTES: u64 = 256 << 20;

/// Pixels between the pictures.
const GAP: usize = 16;
/// Between the pictures, and where a picture has no row.
const GROUND: [u8; 3] = [200, 204, 208];
/// What is gone or has changed.
const GONE: [u8; 3] = [214, 40, 40];
/// What is new.
const ADDED: [u8; 3] = [30, 140, 60];

/// Compares the files 0 and 1 of the job, and writes a picture of both and of what differs.
pub fn compare(caller: &Arc<Caller>) -> Result<(), String> {
    let picture = |number| {
        let mut png = Vec::new();
        let file = caller.file(&Wanted::File(number));
        file.and_then(|file| file.take(PICTURE_MAX_BYTES).read_to_end(&mut png))
            .map_err(|error| error.to_string())?;
        Picture::decode(&png)
    };
    let named = |name| move |reason| format!("the {name} screenshot: {reason}");
    let (old, new) = (picture(0).map_err(named("older"))?, picture(1).map_err(named("newer"))?);
    let difference = Difference::of(&old, &new);
    let output = caller.file(&Wanted::Output).map(BufWriter::new);
    output
        .and_then(|output| difference.write(output))
        .map_err(|error| format!("failed to write the picture: {error}"))?;
    say(difference.summary())
}

/// A row of the result: which rows of the pictures it shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Row {
    /// Row of the older picture, and the row of the newer one that is in its place.
    Both(usize, usize),
    Gone(usize),
    Added(usize),
}

pub struct Difference<'a> {
    old: &'a Picture,
    new: &'a Picture,
    rows: Vec<Row>,
}

/// Number of rows that differ.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    changed: usize,
    gone: usize,
    added: usize,
}

impl Difference<'_> {
    /// Compares two pictures. Those of different widths have no rows in common, and are compared from
    /// the top.
    pub fn of<'a>(old: &'a Picture, new: &'a Picture) -> Difference<'a> {
        let rows = |picture: &'a Picture| -> Vec<&'a [u8]> {
            (0..picture.height).map(|y| picture.row(y)).collect()
        };
        let ops = if old.width == new.width {
            // Blank rows are everywhere; rows that a picture has once are what aligns the two.
            let until = Instant::now() + TIMEOUT;
            let (old, new) = (rows(old), rows(new));
            capture_diff_slices_deadline(Algorithm::Patience, &old, &new, Some(until))
        } else {
            vec![DiffOp::Replace {
                old_index: 0,
                old_len: old.height,
                new_index: 0,
                new_len: new.height,
            }]
        };
        let rows = ops.iter().flat_map(|op| {
            let (old, new) = (op.old_range(), op.new_range());
            let both = old.len().min(new.len());
            let pairs = old.clone().zip(new.clone()).map(|(a, b)| Row::Both(a, b));
            pairs.chain(old.skip(both).map(Row::Gone)).chain(new.skip(both).map(Row::Added))
        });
        Difference { old, new, rows: rows.collect() }
    }

    fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for row in &self.rows {
            match *row {
                Row::Both(a, b) if self.old.row(a) == self.new.row(b) => {}
                Row::Both(..) => counts.changed += 1,
                Row::Gone(_) => counts.gone += 1,
                Row::Added(_) => counts.added += 1,
            }
        }
        counts
    }

    /// What differs, in one line.
    pub fn summary(&self) -> String {
        let Counts { changed, gone, added } = self.counts();
        let (old, new) = (self.old, self.new);
        let sizes = format!(
            "{}\u{d7}{} and {}\u{d7}{} pixels",
            old.width, old.height, new.width, new.height
        );
        if changed + gone + added == 0 {
            return format!("the same, {}\u{d7}{} pixels", old.width, old.height);
        }
        format!("{changed} rows of pixels changed, {gone} removed, {added} added; {sizes}")
    }

    /// Writes both pictures and their difference side by side, as PNG.
    ///
    /// # Errors
    /// If the picture has no pixels or more than the format allows.
    fn write(&self, mut file: impl Write) -> io::Result<()> {
        let widest = self.old.width.max(self.new.width);
        let width = self.old.width + self.new.width + widest + 2 * GAP;
        let size = |pixels: usize| u32::try_from(pixels).map_err(io::Error::other);
        let mut encoder = png::Encoder::new(&mut file, size(width)?, size(self.rows.len())?);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::Fast);
        let mut writer = encoder.write_header()?;
        let mut stream = writer.stream_writer()?;
        let mut line = Vec::with_capacity(width * 3);
        for row in &self.rows {
            line.clear();
            self.draw(*row, &mut line);
            stream.write_all(&line)?;
        }
        stream.finish()?;
        drop(writer);
        file.flush()
    }

    fn draw(&self, row: Row, line: &mut Vec<u8>) {
        let (old, new) = match row {
            Row::Both(a, b) => (self.old.row(a), self.new.row(b)),
            Row::Gone(a) => (self.old.row(a), &[][..]),
            Row::Added(b) => (&[][..], self.new.row(b)),
        };
        let (left, right) = (self.old.width, self.new.width);
        fill(line, old, left);
        fill(line, &[], GAP);
        fill(line, new, right);
        fill(line, &[], GAP);
        let (old, new) = (pixels(old), pixels(new));
        for x in 0..left.max(right) {
            let pixel = match (old.get(x), new.get(x)) {
                (Some(a), Some(b)) if a == b => pale(*a, GROUND),
                (Some(_), Some(_)) => GONE,
                (Some(gone), None) => pale(*gone, GONE),
                (None, Some(added)) => pale(*added, ADDED),
                (None, None) => GROUND,
            };
            line.extend(pixel);
        }
    }
}

fn pixels(row: &[u8]) -> &[[u8; 3]] {
    row.as_chunks().0
}

/// Adds the pixels of a row, and those that it lacks.
fn fill(line: &mut Vec<u8>, row: &[u8], width: usize) {
    line.extend(row);
    for _ in row.len() / 3..width {
        line.extend(GROUND);
    }
}

/// A pixel in a light tint of a colour, dark where the pixel is dark.
fn pale(pixel: [u8; 3], tint: [u8; 3]) -> [u8; 3] {
    let [red, green, blue] = pixel.map(u32::from);
    let light = (red * 3 + green * 6 + blue) / 10;
    tint.map(|part| {
        let white = 255 - (255 - u32::from(part)) * 2 / 5;
        let shade = white * (155 + light * 100 / 255) / 255;
        u8::try_from(shade).unwrap_or(u8::MAX)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHITE: [u8; 3] = [255; 3];

    /// A picture with rows of one colour.
    fn picture(width: u32, rows: &[[u8; 3]]) -> Picture {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, width, rows.len() as u32);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        let bytes = rows.iter().flat_map(|row| row.repeat(width as usize));
        let bytes: Vec<u8> = bytes.collect();
        writer.write_image_data(&bytes).unwrap();
        drop(writer);
        Picture::decode(&file).unwrap()
    }

    /// Rows that a page might have: blank ones between lines of text, of which no two are the same.
    fn page(from: u8, to: u8) -> Vec<[u8; 3]> {
        (from..to).flat_map(|n| [[n, n, n], WHITE]).collect()
    }

    #[test]
    fn line_that_was_added_moves_the_others() {
        let old = picture(5, &page(0, 100));
        let rows = [page(0, 40), vec![[200, 0, 0]; 10], page(40, 100)].concat();
        let new = picture(5, &rows);
        let difference = Difference::of(&old, &new);
        assert_eq!(difference.counts(), Counts { added: 10, ..Counts::default() });
        assert_eq!(
            difference.summary(),
            "0 rows of pixels changed, 0 removed, 10 added; 5\u{d7}200 and 5\u{d7}210 pixels"
        );
        let back = Difference::of(&new, &old);
        assert_eq!((back.counts().gone, back.counts().added), (10, 0));
    }

    #[test]
    fn result_shows_both_pictures_and_what_changed() {
        let old = picture(2, &page(0, 3));
        let mut rows = page(0, 3);
        rows[2] = [9, 0, 0];
        rows.push([7, 7, 7]);
        let new = picture(3, &rows);
        let mut shown = Vec::new();
        Difference::of(&old, &new).write(&mut shown).unwrap();
        let shown = Picture::decode(&shown).unwrap();
        assert_eq!((shown.width, shown.height), (2 + 3 + 3 + 2 * GAP, 7));
        for y in 0..6 {
            assert_eq!(&shown.row(y)[..6], old.row(y));
            let at = (2 + GAP) * 3;
            assert_eq!(&shown.row(y)[at..at + 9], new.row(y));
        }
        let differing = |y: usize| pixels(shown.row(y))[2 + 3 + 2 * GAP..].to_vec();
        assert_eq!(differing(2)[..2], [GONE; 2]);
        assert!(differing(3)[..2].iter().all(|pixel| *pixel != GONE));
        // The last row and the last column are new.
        assert!(differing(6).iter().all(|pixel| pixel[1] > pixel[0]));
        assert!(differing(1)[2][1] > differing(1)[2][0]);
    }

    #[test]
    fn same_pictures_have_no_difference() {
        let (old, new) = (picture(4, &page(0, 9)), picture(4, &page(0, 9)));
        let difference = Difference::of(&old, &new);
        assert_eq!(difference.counts(), Counts::default());
        assert_eq!(difference.summary(), "the same, 4\u{d7}18 pixels");
    }
}
