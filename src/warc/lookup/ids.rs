//! Parts of a request that look like an id: they differ each time a page is loaded, because its scripts make
//! them of chance or of the time.

use super::rules::RULES;
use jiff::Timestamp;
use jiff::tz::TimeZone;

/// Fewest characters of a long hexadecimal number, and of a text that looks like chance.
const LONG: usize = 16;
/// Fewest characters of the value of an argument that is named as an id.
const NAMED_MIN: usize = 4;
/// Fewest digits of a fraction that looks like chance.
const FRACTION_MIN: usize = 8;
/// A number is a time if it is at most so many milliseconds from that of the page.
const TIME_NEAR_MS: u64 = 400 * 24 * 3_600_000;
/// The lengths of the groups of a UUID.
const UUID: [usize; 5] = [8, 4, 4, 4, 12];
/// Arguments that stand for a body that is not taken apart, or for its end.
const OPAQUE: [&str; 2] = ["__posted=", "__wb_post_data="];

#[derive(Clone, Debug, PartialEq, Eq)]
enum Id {
    Chance(String),
    /// In milliseconds.
    Time(i64),
}

/// A text in which a sign stands for each id.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    text: String,
    ids: Vec<Id>,
}

impl Shape {
    /// The shape of a URL without fragment and of the text of a posted body. The scheme does not count, and
    /// a host has no ids.
    pub(super) fn of(url: &str, posted: &str, near: Timestamp) -> Shape {
        let mut shape = Shape::default();
        let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
        let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        shape.text.push_str(host);
        shape.add(path, near);
        shape.text.push('\n');
        shape.add(posted, near);
        shape
    }

    /// The text before the first id, which all requests of the same shape have.
    pub(super) fn beginning(&self) -> Option<&str> {
        self.text.split_once('\0').map(|(beginning, _)| beginning)
    }

    /// How many ids of chance differ, and how many milliseconds the times. `None` if something else differs.
    pub(super) fn distance(&self, other: &Shape) -> Option<(usize, u64)> {
        let is_same = self.text == other.text && self.ids.len() == other.ids.len();
        is_same.then(|| {
            let pairs = self.ids.iter().zip(&other.ids);
            pairs.fold((0, 0_u64), |(chance, time), pair| match pair {
                (Id::Time(ours), Id::Time(theirs)) => {
                    (chance, time.saturating_add(ours.abs_diff(*theirs)))
                }
                (ours, theirs) => (chance + usize::from(ours != theirs), time),
            })
        })
    }

    fn add(&mut self, text: &str, near: Timestamp) {
        let mut at = 0;
        let mut is_begin = true;
        while let Some(next) = text[at..].chars().next() {
            let (before, rest) = text.split_at(at);
            if is_begin && OPAQUE.iter().any(|name| rest.starts_with(name)) {
                let end = rest.find('&').unwrap_or(rest.len());
                self.text.push_str(&rest[..end]);
                at += end;
                continue;
            }
            let found = is_begin.then(|| named(before, rest).or_else(|| id(rest, near))).flatten();
            if let Some((length, id)) = found {
                self.text.push('\0');
                self.ids.push(id);
                at += length;
                is_begin = false;
                continue;
            }
            // An escape ends a word: the digits after it are not those of an id.
            let length = if next == '%' && rest.is_char_boundary(3.min(rest.len())) {
                3.min(rest.len())
            } else {
                next.len_utf8()
            };
            self.text.push_str(&rest[..length]);
            at += length;
            is_begin = !next.is_ascii_alphanumeric();
        }
    }
}

/// An id at the begin of a text, and its length.
fn id(text: &str, near: Timestamp) -> Option<(usize, Id)> {
    let word = |more: &str| {
        let is_in = |c: char| c.is_ascii_alphanumeric() || more.contains(c);
        &text[..text.find(|c| !is_in(c)).unwrap_or(text.len())]
    };
    let chance = |word: &str| Some((word.len(), Id::Chance(word.to_owned())));
    let time = |length, at: i64| {
        let is_near = at.abs_diff(near.as_millisecond()) < TIME_NEAR_MS;
        is_near.then_some((length, Id::Time(at)))
    };
    if let Some(found) = date(text).and_then(|(length, at)| time(length, at)) {
        return Some(found);
    }
    let dashed = word("-");
    let groups: Vec<_> = dashed.split('-').collect();
    let is_uuid = groups.iter().map(|group| group.len()).eq(UUID)
        && groups.iter().all(|group| group.bytes().all(|byte| byte.is_ascii_hexdigit()));
    if is_uuid {
        return chance(dashed);
    }
    let plain = word("");
    if let Ok(number) = plain.parse::<i64>() {
        let at = match plain.len() {
            10 => number.checked_mul(1000),
            13 => Some(number),
            16 => Some(number / 1000),
            _ => None,
        };
        let fraction = text[plain.len()..].strip_prefix('.').filter(|_| plain == "0");
        let digits = fraction.map_or(0, |rest| rest.bytes().take_while(u8::is_ascii_digit).count());
        if digits >= FRACTION_MIN {
            return chance(&text[..plain.len() + 1 + digits]);
        }
        return at.and_then(|at| time(plain.len(), at));
    }
    let is_hex = plain.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte))
        || plain.bytes().all(|byte| byte.is_ascii_digit() || (b'A'..=b'F').contains(&byte));
    if plain.len() >= LONG && is_hex && plain.bytes().any(|byte| byte.is_ascii_digit()) {
        return chance(plain);
    }
    // Base64 for URLs, of which other parts can be any.
    let long = word("-_");
    let is_part = |part: &str| {
        let has = |is_in: fn(&u8) -> bool| part.bytes().any(|byte| is_in(&byte));
        part.len() >= LONG / 2
            && is_chance(part)
            && has(u8::is_ascii_uppercase)
            && has(u8::is_ascii_lowercase)
    };
    let is_long = long.len() >= LONG && long.split(['-', '_']).any(is_part);
    if is_long {
        chance(long)
    } else if plain.len() >= LONG && is_chance(plain) {
        chance(plain)
    } else {
        None
    }
}

/// Whether digits and letters of both cases alternate as only chance has them. A name of words has few digits
/// and runs of letters.
fn is_chance(word: &str) -> bool {
    let kind = |byte: u8| (byte.is_ascii_digit(), byte.is_ascii_uppercase());
    let kinds: Vec<_> = word.bytes().map(kind).collect();
    let digits = word.bytes().filter(u8::is_ascii_digit).count();
    let changes = kinds.windows(2).filter(|pair| pair[0] != pair[1]).count();
    digits >= 2 && 3 * changes >= kinds.len()
}

/// The value of an argument whose name says that it is an id. `before` ends where `rest` begins.
fn named(before: &str, rest: &str) -> Option<(usize, Id)> {
    let name = before.strip_suffix('=')?;
    let name = name.rsplit(['?', '&', ';']).next()?;
    // Of several members of this name in JSON, the later ones have a number.
    let name = name.strip_suffix('_').and_then(|name| name.split('.').next()).unwrap_or(name);
    let value = &rest[..rest.find(['&', ';', '/', '?']).unwrap_or(rest.len())];
    let is_id = RULES.names_id(name)
        && value.len() >= NAMED_MIN
        && value.bytes().any(|byte| byte.is_ascii_digit());
    is_id.then(|| (value.len(), Id::Chance(value.to_owned())))
}

/// A date with a time of day at the begin of a text (RFC 3339), whose colons may be escaped, and its length.
fn date(text: &str) -> Option<(usize, i64)> {
    const FORM: &[u8] = b"0000-00-00T00:00:00";
    if text.as_bytes().get(4) != Some(&b'-') {
        return None;
    }
    let mut plain = String::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let escaped = rest.get(..3).filter(|escape| escape.eq_ignore_ascii_case("%3a"));
        let is_in = match FORM.get(plain.len()) {
            Some(b'0') => first.is_ascii_digit(),
            Some(b':') => first == ':' || escaped.is_some(),
            Some(sign) => first == char::from(*sign),
            None => first.is_ascii_digit() || (first == '.' && plain.len() == FORM.len()),
        };
        if !is_in {
            break;
        }
        plain.push(if escaped.is_some() { ':' } else { first });
        rest = &rest[escaped.map_or(1, str::len)..];
    }
    let rest = rest.strip_prefix('Z').unwrap_or(rest);
    let time: jiff::civil::DateTime = plain.parse().ok().filter(|_| plain.len() >= FORM.len())?;
    let time = time.to_zoned(TimeZone::UTC).ok()?.timestamp();
    Some((text.len() - rest.len(), time.as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::at;

    fn shape(path: &str) -> Shape {
        Shape::of(&format!("https://a.test/{path}"), "", at("2026-11-26T09:53:41Z"))
    }

    #[test]
    fn names_are_no_ids() {
        for (path, expected) in [
            ("s/550e8400-e29b-41d4-a716-446655440000/x.json", "s/\0/x.json"),
            ("part-1-of-2-in-3-days-and-4-nights-5", "part-1-of-2-in-3-days-and-4-nights-5"),
            ("a%2F550E8400-E29B-41D4-A716-446655440000", "a%2F\0"),
            ("img-d41d8cd98f00b204e9800998ecf8427e.png", "img-\0.png"),
            ("t/1764150821123/1764150821", "t/\0/\0"),
            (
                "t/1264150821123/4915112345/1234567890123456789",
                "t/1264150821123/4915112345/1234567890123456789",
            ),
            ("x?at=2026-11-26T09%3A53%3A41.250Z&b=2", "x?at=\0&b=2"),
            ("x?at=2026-11-26T09:53:41&b=2", "x?at=\0&b=2"),
            ("x?at=2026-11-26&b=2026-99-26T09:53:41", "x?at=2026-11-26&b=2026-99-26T09:53:41"),
            ("0.5512345678/1.5512345678", "\0/1.5512345678"),
            ("x;jsessionid=A81F?Session-ID=7f3a&sid=x1", "x;jsessionid=\0?Session-ID=\0&sid=x1"),
            ("x?session=open", "x?session=open"),
            ("dQw4w9WgXcQaB3dE7/dQw4w9WgX-cQaB3d_7Zk2p", "\0/\0"),
            (
                "getUserProfileV2Settings/My-Long-Article-Of-2026",
                "getUserProfileV2Settings/My-Long-Article-Of-2026",
            ),
            ("deadbeefdeadbeef/0123456789", "deadbeefdeadbeef/0123456789"),
            ("ünï/%zz%", "ünï/%zz%"),
        ] {
            assert_eq!(shape(path).text, format!("a.test/{expected}\n"), "{path}");
        }
        let host = "https://d41d8cd98f00b204e9800998ecf8427e.test/";
        assert_eq!(Shape::of(host, "", at("2026-11-26T09:53:41Z")).beginning(), None);
    }

    #[test]
    fn bodies_that_are_not_taken_apart_have_no_ids() {
        for posted in [
            "__wb_post_data=dQw4w9WgXcQaB3dE7",
            "a=1&__posted=sha256:d41d8cd98f00b204e9800998ecf8427e",
        ] {
            let shape = Shape::of("https://a.test/", posted, at("2026-11-26T09:53:41Z"));
            assert_eq!(shape.text, format!("a.test/\n{posted}"));
        }
        let posted = "id=550e8400-e29b-41d4-a716-446655440000&sid.2_=ab12&n=1";
        let shape = Shape::of("https://a.test/", posted, at("2026-11-26T09:53:41Z"));
        assert_eq!(shape.text, "a.test/\nid=\0&sid.2_=\0&n=1");
    }

    #[test]
    fn distance_is_of_ids_then_of_times() {
        let (a, b) = ("550e8400-e29b-41d4-a716-446655440000", "d41d8cd98f00b204e9800998ecf8427e");
        let (c, d) = (a.replace('5', "6"), b.replace('4', "3"));
        let of = |x: &str, y: &str, t: u64| shape(&format!("{x}/{y}/{t}"));
        let asked = of(a, b, 1_764_150_821_000);
        assert_eq!(asked.distance(&of(a, b, 1_764_150_821_050)), Some((0, 50)));
        assert_eq!(asked.distance(&of(a, &d, 1_764_150_820_900)), Some((1, 100)));
        assert_eq!(asked.distance(&of(&c, &d, 1_764_150_821_000)), Some((2, 0)));
        assert_eq!(asked.distance(&shape("other")), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_shape(path in ".{0,60}", posted in "([0-9a-f%T:=&.-]|__posted=){0,40}") {
            let near = at("2026-11-26T09:53:41Z");
            let shape = Shape::of(&format!("https://a.test/{path}"), &posted, near);
            proptest::prop_assert_eq!(shape.distance(&shape), Some((0, 0)));
        }
    }
}
