//! Pictures of pages, and how similar two of them are: the structural similarity (SSIM, Wang et al. 2004)
//! of blocks.
//!
//! Libraries with this index (image-compare, dssim) bring a framework for images and a pool of
//! threads, or a licence that this program cannot have.

use std::io::Cursor;

/// Side of a block in pixels.
const BLOCK: usize = 8;
/// Largest picture in pixels: the largest viewport.
const PIXELS_MAX: usize = 16_384 * 16_384 / 4;

/// A picture with red, green and blue of each pixel.
pub struct Picture {
    /// Width in pixels.
    pub width: usize,
    /// Height in pixels.
    pub height: usize,
    bytes: Vec<u8>,
}

impl Picture {
    /// Decodes a PNG as chromium makes them.
    ///
    /// # Errors
    /// If the file is damaged, too large, or of another kind.
    pub fn decode(png: &[u8]) -> Result<Picture, String> {
        let failed = |error: &dyn std::fmt::Display| format!("failed to decode the PNG: {error}");
        let mut decoder = png::Decoder::new(Cursor::new(png));
        decoder.set_transformations(png::Transformations::normalize_to_color8());
        let mut reader = decoder.read_info().map_err(|error| failed(&error))?;
        let size = reader.info().size();
        let (width, height) = (size.0 as usize, size.1 as usize);
        if width.saturating_mul(height) > PIXELS_MAX {
            return Err(failed(&"it has too many pixels"));
        }
        let most = reader.output_buffer_size();
        let mut bytes = vec![0; most.ok_or_else(|| failed(&"it is too large"))?];
        let frame = reader.next_frame(&mut bytes).map_err(|error| failed(&error))?;
        bytes.truncate(frame.buffer_size());
        let samples = frame.color_type.samples();
        let bytes = match samples {
            3 => bytes,
            4 => bytes.chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect(),
            1 | 2 => bytes.chunks_exact(samples).flat_map(|p| [p[0]; 3]).collect(),
            _ => return Err(failed(&"it has an unknown kind of colour")),
        };
        Ok(Picture { width, height, bytes })
    }

    /// The bytes of a row of pixels, from the top. Empty below the picture.
    pub fn row(&self, y: usize) -> &[u8] {
        let length = self.width * 3;
        let from = y.saturating_mul(length);
        self.bytes.get(from..from.saturating_add(length)).unwrap_or_default()
    }
}

/// The mean similarity of all blocks of two pictures, from 0 to 1, by the colour that differs most; 0
/// if they have different sizes.
pub fn similarity(one: &Picture, other: &Picture) -> f64 {
    if (one.width, one.height) != (other.width, other.height) {
        return 0.0;
    }
    let (mut sum, mut blocks) = (0.0, 0.0);
    for top in (0..one.height).step_by(BLOCK) {
        for left in (0..one.width).step_by(BLOCK) {
            let colours = (0..3).map(|colour| of_block(one, other, (left, top), colour));
            sum += colours.fold(1.0, f64::min);
            blocks += 1.0;
        }
    }
    (sum / f64::max(blocks, 1.0)).max(0.0)
}

/// The similarity of one colour of a block: 1 if all its values are the same.
fn of_block(one: &Picture, other: &Picture, (left, top): (usize, usize), colour: usize) -> f64 {
    // The constants of the paper, for values up to 255.
    const C1: f64 = 0.01 * 255.0 * 0.01 * 255.0;
    const C2: f64 = 0.03 * 255.0 * 0.03 * 255.0;
    let (right, bottom) = (one.width.min(left + BLOCK), one.height.min(top + BLOCK));
    let (mut n, mut a, mut b, mut aa, mut bb, mut ab) = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0);
    for y in top..bottom {
        for x in left..right {
            let at = (y * one.width + x) * 3 + colour;
            let (p, q) = (f64::from(one.bytes[at]), f64::from(other.bytes[at]));
            n += 1.0;
            a += p;
            b += q;
            aa += p * p;
            bb += q * q;
            ab += p * q;
        }
    }
    let (a, b) = (a / n, b / n);
    let variances = (aa / n - a * a) + (bb / n - b * b);
    let covariance = ab / n - a * b;
    (2.0 * a * b + C1) * (2.0 * covariance + C2) / ((a * a + b * b + C1) * (variances + C2))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn picture(width: usize, height: usize, colour: impl Fn(usize, usize) -> [u8; 3]) -> Picture {
        let pixels = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Picture { width, height, bytes: pixels.flat_map(|(x, y)| colour(x, y)).collect() }
    }

    #[test]
    fn differences_of_place_and_colour_are_seen() {
        let lines = || picture(80, 60, |x, y| [(x * 3) as u8, (y * 4) as u8, 0]);
        assert!((similarity(&lines(), &lines()) - 1.0).abs() < 1e-9);
        let moved = picture(80, 60, |x, y| [(x * 3) as u8, (60 - y) as u8 * 4, 0]);
        assert!(similarity(&lines(), &moved) < 0.5);
        let recoloured = picture(80, 60, |x, y| [(x * 3) as u8, (y * 4) as u8, 200]);
        assert!(similarity(&lines(), &recoloured) < 0.1);
        let (white, black) = ([255; 3], [0; 3]);
        let patch = picture(80, 64, |x, y| if x < 8 && y < 8 { black } else { white });
        let of_patch = similarity(&picture(80, 64, |_, _| white), &patch);
        assert!((of_patch - 79.0 / 80.0).abs() < 0.001, "{of_patch}");
        assert_eq!(similarity(&lines(), &picture(80, 59, |_, _| white)), 0.0);
    }

    #[test]
    fn png_of_each_kind_is_decoded() {
        for (kind, pixel) in [
            (png::ColorType::Rgba, &[9, 8, 7, 255][..]),
            (png::ColorType::Rgb, &[9, 8, 7]),
            (png::ColorType::Grayscale, &[9]),
        ] {
            let mut file = Vec::new();
            let mut encoder = png::Encoder::new(&mut file, 2, 1);
            encoder.set_color(kind);
            let mut writer = encoder.write_header().unwrap();
            writer.write_image_data(&pixel.repeat(2)).unwrap();
            drop(writer);
            let decoded = Picture::decode(&file).unwrap();
            assert_eq!((decoded.width, decoded.height), (2, 1));
            assert_eq!(decoded.bytes.len(), 6);
            assert_eq!(decoded.bytes[3], 9, "{kind:?}");
            assert!(Picture::decode(&file[..40]).is_err());
        }
    }
}
