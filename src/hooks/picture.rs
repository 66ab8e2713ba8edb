//! Pictures of pages, and how similar two of them are: the structural similarity (SSIM, Wang et al. 2004)
//! of blocks.
//!
//! Libraries with this index (image-compare, dssim) bring a framework for images and a pool of
//! threads, or a licence that this program cannot have.

use std::error::Error;
use std::fmt::Display;
use std::io::{Cursor, Write};

/// Side of a block in pixels.
const BLOCK: usize = 8;
/// Largest picture in pixels: the largest viewport.
const PIXELS_MAX: usize = 16_384 * 16_384 / 4;

/// How chromium writes a picture of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PictureFormat {
    /// Not every pixel is kept, and the file has a third of the size, or half of it if the picture shows text.
    /// No side is longer than 16,383 pixels.
    Webp,
    Png,
}

impl PictureFormat {
    /// Returns the format of a file, which need not be whole.
    pub fn of(file: &[u8]) -> PictureFormat {
        if file.starts_with(b"RIFF") { PictureFormat::Webp } else { PictureFormat::Png }
    }

    /// Returns the name of the format for chromium, and of its files.
    pub fn name(self) -> &'static str {
        match self {
            PictureFormat::Webp => "webp",
            PictureFormat::Png => "png",
        }
    }

    pub fn media_type(self) -> &'static str {
        match self {
            PictureFormat::Webp => "image/webp",
            PictureFormat::Png => "image/png",
        }
    }
}

/// Returns whether the bytes are a file in this format from its beginning to its end.
pub fn is_whole(file: &[u8], format: PictureFormat) -> bool {
    match format {
        PictureFormat::Png => {
            file.starts_with(b"\x89PNG\r\n\x1a\n")
                && file.len() > 57
                && file.ends_with(b"IEND\xaeB`\x82")
        }
        // https://developers.google.com/speed/webp/docs/riff_container
        PictureFormat::Webp => {
            let size = file.get(4..8).and_then(|size| size.try_into().ok()).map(u32::from_le_bytes);
            let is_same = |size| size as usize + 8 == file.len();
            file.get(8..12) == Some(b"WEBP") && size.is_some_and(is_same)
        }
    }
}

/// Level of DEFLATE. The next one takes a quarter more time for 4 % of the bytes.
const LEVEL: u8 = 2;

/// Compresses a PNG again, without filters, which make pictures of text larger. Returns the file itself if it
/// is another format, or becomes no smaller. The picture is never in memory as a whole.
pub fn compressed(file: Vec<u8>) -> Vec<u8> {
    match compress(&file) {
        Ok(smaller) if smaller.len() < file.len() => smaller,
        _ => file,
    }
}

fn compress(file: &[u8]) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut reader = png::Decoder::new(Cursor::new(file)).read_info()?;
    let (info, mut smaller) = (reader.info(), Vec::with_capacity(file.len()));
    if info.palette.is_some() || info.trns.is_some() || info.interlaced {
        return Err("chromium writes none of these".into());
    }
    let mut encoder = png::Encoder::new(&mut smaller, info.width, info.height);
    encoder.set_color(info.color_type);
    encoder.set_depth(info.bit_depth);
    encoder.set_deflate_compression(png::DeflateCompression::Level(LEVEL));
    encoder.set_filter(png::Filter::NoFilter);
    let mut writer = encoder.write_header()?;
    let mut rows = writer.stream_writer()?;
    while let Some(row) = reader.next_row()? {
        rows.write_all(row.data())?;
    }
    rows.finish()?;
    writer.finish()?;
    Ok(smaller)
}

/// A picture with red, green and blue of each pixel.
pub struct Picture {
    pub width: usize,
    pub height: usize,
    bytes: Vec<u8>,
}

impl Picture {
    /// Decodes a picture as chromium makes them.
    ///
    /// # Errors
    /// If the file is damaged, too large, or in another format.
    pub fn decode(file: &[u8]) -> Result<Picture, String> {
        match PictureFormat::of(file) {
            PictureFormat::Webp => Picture::decode_webp(file),
            PictureFormat::Png => Picture::decode_png(file),
        }
    }

    fn decode_webp(file: &[u8]) -> Result<Picture, String> {
        let failed = |error: &dyn Display| format!("failed to decode the WebP: {error}");
        let decoder = image_webp::WebPDecoder::new(Cursor::new(file));
        let mut decoder = decoder.map_err(|error| failed(&error))?;
        let (width, height) = decoder.dimensions();
        let (width, height) = (width as usize, height as usize);
        let size = decoder.output_buffer_size();
        let size = size.filter(|_| width * height <= PIXELS_MAX);
        let mut bytes = vec![0; size.ok_or_else(|| failed(&"it has too many pixels"))?];
        decoder.read_image(&mut bytes).map_err(|error| failed(&error))?;
        if decoder.has_alpha() {
            bytes = bytes.chunks_exact(4).flat_map(|p| [p[0], p[1], p[2]]).collect();
        }
        Ok(Picture { width, height, bytes })
    }

    fn decode_png(file: &[u8]) -> Result<Picture, String> {
        let failed = |error: &dyn Display| format!("failed to decode the PNG: {error}");
        let mut decoder = png::Decoder::new(Cursor::new(file));
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

    /// Whether all of it has one colour, as far as a format that does not keep every pixel shows it.
    pub fn is_uniform(&self) -> bool {
        const DIFFERENCE: u8 = 2;
        let first = self.bytes.first_chunk::<3>().copied().unwrap_or_default();
        let is_same = |pixel: &[u8]| {
            pixel.iter().zip(first).all(|(one, other)| one.abs_diff(other) <= DIFFERENCE)
        };
        self.bytes.chunks_exact(3).all(is_same)
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
    fn picture_of_one_colour_is_uniform() {
        let noise = |x: usize, y: usize| [255 - (x + y) as u8 % 3, 255, 254];
        assert!(picture(80, 60, noise).is_uniform());
        let line = |x: usize, _: usize| if x == 40 { [0; 3] } else { [255; 3] };
        assert!(!picture(80, 60, line).is_uniform());
    }

    #[test]
    fn incomplete_file_is_no_whole_one() {
        let mut png = b"\x89PNG\r\n\x1a\n".to_vec();
        png.extend([0; 60]);
        assert!(!is_whole(&png, PictureFormat::Png));
        png.extend(b"IEND\xaeB`\x82");
        assert!(is_whole(&png, PictureFormat::Png));
        assert!(!is_whole(&png, PictureFormat::Webp));
        let webp = b"RIFF\x08\0\0\0WEBPVP8 ";
        assert!(is_whole(webp, PictureFormat::Webp));
        assert!(!is_whole(&webp[..15], PictureFormat::Webp));
        for format in [PictureFormat::Png, PictureFormat::Webp] {
            assert!(!is_whole(b"", format), "{format:?}");
        }
    }

    #[test]
    fn webp_is_decoded() {
        let mut file = Vec::new();
        let encoder = image_webp::WebPEncoder::new(&mut file);
        encoder.encode(&[9, 8, 7, 6, 5, 4], 2, 1, image_webp::ColorType::Rgb8).unwrap();
        let decoded = Picture::decode(&file).unwrap();
        assert_eq!(
            (decoded.width, decoded.height, decoded.row(0)),
            (2, 1, &[9, 8, 7, 6, 5, 4][..])
        );
        assert!(Picture::decode(&file[..20]).is_err());
    }

    /// A PNG of text, as chromium writes it.
    fn written_fast() -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, 400, 300);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_deflate_compression(png::DeflateCompression::Level(1));
        encoder.set_filter(png::Filter::Up);
        let letters = picture(400, 300, |x, y| {
            let ink = (x / 7 * 31 + y / 9 * 17) % 5 == 0 && (x * y) % 3 > 0;
            if ink { [(x % 7 * 30) as u8; 3] } else { [255; 3] }
        });
        encoder.write_header().unwrap().write_image_data(&letters.bytes).unwrap();
        file
    }

    #[test]
    fn compressed_picture_is_smaller_and_has_the_same_pixels() {
        let file = written_fast();
        let smaller = compressed(file.clone());
        assert!(smaller.len() < file.len() * 9 / 10, "{} of {}", smaller.len(), file.len());
        assert!(is_whole(&smaller, PictureFormat::Png));
        let pixels = |file: &[u8]| Picture::decode(file).unwrap().bytes;
        assert_eq!(pixels(&smaller), pixels(&file));
        assert_eq!(compressed(smaller.clone()), smaller);
    }

    #[test]
    fn picture_that_cannot_be_compressed_stays() {
        let file = written_fast();
        let webp = b"RIFF\x04\0\0\0WEBP".to_vec();
        for file in [file[..file.len() / 2].to_vec(), webp, Vec::new()] {
            assert_eq!(compressed(file.clone()), file);
        }
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
