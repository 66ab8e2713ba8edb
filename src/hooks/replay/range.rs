//! Parts of bodies that a request asks for (RFC 9110, section 14).

use std::ops::Range;

/// Largest part in bytes that a media element gets at once. It asks for the next part when it needs
/// more, so that a video of any size fits in memory.
const MEDIA_PIECE_BYTES: u64 = 1 << 20;

/// What to send of a recorded body.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// The whole recorded body, with the recorded status.
    Whole,
    /// These bytes of the resource, with status 206.
    Of(Range<u64>),
    /// Nothing, with status 416.
    Outside,
}

/// Selects the bytes of a resource of `length` bytes for a `Range` header. Several ranges and other
/// units are ignored, as a server may do.
pub fn select(header: Option<&str>, length: u64, is_media: bool) -> Part {
    let Some((first, last)) = header.and_then(parse) else {
        return Part::Whole;
    };
    let range = match (first, last) {
        (Some(first), Some(last)) if last < first => return Part::Whole,
        (Some(first), last) => {
            let end = last.map_or(length, |last| last.saturating_add(1));
            first..end.min(length)
        }
        (None, Some(suffix)) => length.saturating_sub(suffix)..length,
        (None, None) => return Part::Whole,
    };
    if range.start >= range.end {
        return Part::Outside;
    }
    let most = if is_media { MEDIA_PIECE_BYTES } else { u64::MAX };
    Part::Of(range.start..range.end.min(range.start.saturating_add(most)))
}

/// Reads `bytes=FIRST-LAST`, either of which may be missing.
fn parse(header: &str) -> Option<(Option<u64>, Option<u64>)> {
    let (first, last) = header.trim().strip_prefix("bytes=")?.split_once('-')?;
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        text => text.parse().ok().map(Some),
    };
    Some((number(first)?, number(last)?))
}

/// Reads the first byte and the length of the resource, if it is known, of a `Content-Range` header.
pub fn recorded(header: &str) -> Option<(u64, Option<u64>)> {
    let (range, length) = header.trim().strip_prefix("bytes ")?.split_once('/')?;
    let (first, _) = range.split_once('-')?;
    Some((first.trim().parse().ok()?, length.trim().parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn part_is_what_the_header_asks_for() {
        let of = |header, length| select(Some(header), length, false);
        assert_eq!(of("bytes=0-99", 1000), Part::Of(0..100));
        assert_eq!(of("bytes=990-2000", 1000), Part::Of(990..1000));
        assert_eq!(of("bytes=5-", 1000), Part::Of(5..1000));
        assert_eq!(of("bytes=-10", 1000), Part::Of(990..1000));
        assert_eq!(of("bytes=-2000", 1000), Part::Of(0..1000));
        assert_eq!(of("bytes=1000-", 1000), Part::Outside);
        assert_eq!(of("bytes=0-", 0), Part::Outside);
        assert_eq!(of("bytes=0-18446744073709551615", 9), Part::Of(0..9));
        for ignored in ["bytes=0-1,5-6", "bytes=9-1", "bytes=-", "lines=0-1", "x"] {
            assert_eq!(of(ignored, 1000), Part::Whole, "{ignored}");
        }
        assert_eq!(select(None, 1000, true), Part::Whole);
    }

    #[test]
    fn media_gets_one_piece_at_a_time() {
        let length = 5 * MEDIA_PIECE_BYTES;
        let of = |header| select(Some(header), length, true);
        assert_eq!(of("bytes=0-"), Part::Of(0..MEDIA_PIECE_BYTES));
        let last = length - 7;
        assert_eq!(of(&format!("bytes={last}-")), Part::Of(last..length), "the end of the body");
    }

    #[test]
    fn recorded_part_is_read() {
        assert_eq!(recorded("bytes 5-9/100"), Some((5, Some(100))));
        assert_eq!(recorded("bytes 5-9/*"), Some((5, None)));
        assert_eq!(recorded("bytes */100"), None);
    }
}
