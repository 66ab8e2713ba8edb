//! Reads properties in a message (`a{sv}`) in one pass and skips those that are not needed. A
//! service has 300 properties, of which a dozen matter; making serde values of all of them was a
//! quarter of the orchestrator's CPU time for a hook. The format is in the D-Bus specification,
//! section Message Protocol, Marshalling.

use zbus::message::Body;
use zbus::wire::Endian;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'m> {
    Number(u64),
    Signed(i32),
    Text(&'m str),
    Other,
}

impl<'m> Value<'m> {
    pub fn number(self) -> Option<u64> {
        match self {
            Value::Number(number) => Some(number),
            _ => None,
        }
    }

    pub fn signed(self) -> Option<i32> {
        match self {
            Value::Signed(number) => Some(number),
            _ => None,
        }
    }

    pub fn text(self) -> Option<String> {
        match self {
            Value::Text(text) => Some(text.to_owned()),
            _ => None,
        }
    }
}

/// How deep containers may be nested: a little deeper than the bus permits (64).
const DEPTH_MAX: u32 = 70;

/// A position in the bytes of a body.
struct Cursor<'m> {
    bytes: &'m [u8],
    at: usize,
    endian: Endian,
}

impl<'m> Cursor<'m> {
    fn align(&mut self, to: usize) {
        self.at = self.at.next_multiple_of(to);
    }

    fn take(&mut self, length: usize) -> Option<&'m [u8]> {
        let end = self.at.checked_add(length)?;
        let taken = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(taken)
    }

    fn u32(&mut self) -> Option<u32> {
        self.align(4);
        let bytes = self.take(4)?.try_into().ok()?;
        Some(match self.endian {
            Endian::Little => u32::from_le_bytes(bytes),
            Endian::Big => u32::from_be_bytes(bytes),
        })
    }

    fn u64(&mut self) -> Option<u64> {
        self.align(8);
        let bytes = self.take(8)?.try_into().ok()?;
        Some(match self.endian {
            Endian::Little => u64::from_le_bytes(bytes),
            Endian::Big => u64::from_be_bytes(bytes),
        })
    }

    fn text(&mut self) -> Option<&'m str> {
        let length = self.u32()? as usize;
        let text = self.take(length)?;
        self.take(1)?;
        std::str::from_utf8(text).ok()
    }

    fn signature(&mut self) -> Option<&'m [u8]> {
        let length = usize::from(*self.take(1)?.first()?);
        let signature = self.take(length)?;
        self.take(1)?;
        Some(signature)
    }

    /// Skips one value of the first type in `signature`, and removes that type from it.
    fn skip(&mut self, signature: &mut &[u8], depth: u32) -> Option<()> {
        let (&kind, rest) = signature.split_first()?;
        *signature = rest;
        if depth > DEPTH_MAX {
            return None;
        }
        match kind {
            b'y' => drop(self.take(1)?),
            b'n' | b'q' => {
                self.align(2);
                self.take(2)?;
            }
            b'b' | b'i' | b'u' | b'h' => drop(self.u32()?),
            b'x' | b't' | b'd' => drop(self.u64()?),
            b's' | b'o' => {
                let length = self.u32()? as usize;
                self.take(length.checked_add(1)?)?;
            }
            b'g' => drop(self.signature()?),
            b'a' => {
                let length = self.u32()? as usize;
                self.align(alignment(*signature.first()?));
                self.take(length)?;
                *signature = signature.get(length_of_type(signature, depth)?..)?;
            }
            b'(' | b'{' => {
                self.align(8);
                while !matches!(signature.first()?, b')' | b'}') {
                    self.skip(signature, depth + 1)?;
                }
                *signature = &signature[1..];
            }
            b'v' => {
                let mut inner = self.signature()?;
                self.skip(&mut inner, depth + 1)?;
            }
            _ => return None,
        }
        Some(())
    }

    fn value(&mut self) -> Option<Value<'m>> {
        let mut signature = self.signature()?;
        Some(match signature {
            b"s" | b"o" => Value::Text(self.text()?),
            b"t" => Value::Number(self.u64()?),
            b"i" => Value::Signed(self.u32()?.cast_signed()),
            _ => {
                self.skip(&mut signature, 0)?;
                Value::Other
            }
        })
    }
}

fn alignment(kind: u8) -> usize {
    match kind {
        b'y' | b'g' | b'v' => 1,
        b'n' | b'q' => 2,
        b'x' | b't' | b'd' | b'(' | b'{' => 8,
        _ => 4,
    }
}

/// Returns the length of the first type in `signature`, in bytes.
fn length_of_type(signature: &[u8], depth: u32) -> Option<usize> {
    if depth > DEPTH_MAX {
        return None;
    }
    match signature.first()? {
        b'a' => Some(1 + length_of_type(&signature[1..], depth + 1)?),
        b'(' | b'{' => {
            let mut at = 1;
            while !matches!(signature.get(at)?, b')' | b'}') {
                at += length_of_type(&signature[at..], depth + 1)?;
            }
            Some(at + 1)
        }
        _ => Some(1),
    }
}

/// Calls `see` for every property of a body that is a dictionary, or that has one after `texts`
/// texts. Returns `None` if the body has another type.
pub fn each<'m>(
    body: &'m Body,
    texts: usize,
    mut see: impl FnMut(&'m str, Value<'m>),
) -> Option<()> {
    let data = body.data();
    let mut cursor = Cursor { bytes: data.bytes(), at: 0, endian: data.context().endian() };
    for _ in 0..texts {
        cursor.text()?;
    }
    let length = cursor.u32()? as usize;
    cursor.align(8);
    let end = cursor.at.checked_add(length)?;
    while cursor.at < end {
        cursor.align(8);
        let name = cursor.text()?;
        see(name, cursor.value()?);
    }
    (cursor.at == end).then_some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;
    use zbus::Message;
    use zbus::wire::Variant;

    fn message(body: &(impl serde::Serialize + zbus::Type)) -> Message {
        Message::signal("/o", "org.example.I", "Changed").build(body).unwrap()
    }

    fn properties() -> BTreeMap<&'static str, Variant<'static>> {
        let exec = vec![("/bin/x", vec!["x", "é"], false, 7u64, 8u64, 9i32)];
        BTreeMap::from([
            ("Aa", Variant::from(7u8)),
            ("Bytes", Variant::from(vec![1u8, 2, 3])),
            ("Code", Variant::from(-3i32)),
            ("Empty", Variant::from(Vec::<u64>::new())),
            ("Exec", Variant::from(exec)),
            ("Flag", Variant::from(true)),
            ("Inner", Variant::Variant(Box::new(Variant::from(5u16)))),
            ("Many", Variant::from(u64::MAX - 1)),
            ("Result", Variant::from("success")),
            ("Short", Variant::from(5i16)),
            ("Tree", Variant::from(vec![vec![("a", 1u64)], Vec::new()])),
        ])
    }

    fn seen(message: &Message, texts: usize) -> Option<Vec<(String, String)>> {
        let mut seen = Vec::new();
        each(&message.body(), texts, |name, value| {
            seen.push((name.to_owned(), format!("{value:?}")));
        })?;
        Some(seen)
    }

    #[test]
    fn properties_of_all_types_are_passed() {
        let expected: Vec<_> = properties()
            .keys()
            .map(|name| {
                let value = match *name {
                    "Code" => Value::Signed(-3),
                    "Many" => Value::Number(u64::MAX - 1),
                    "Result" => Value::Text("success"),
                    _ => Value::Other,
                };
                ((*name).to_owned(), format!("{value:?}"))
            })
            .collect();
        let all = message(&properties());
        assert_eq!(seen(&all, 0).as_ref(), Some(&expected));
        let changed = message(&("org.example.I", properties(), vec!["Gone"]));
        assert_eq!(seen(&changed, 1).as_ref(), Some(&expected));
        assert_eq!(seen(&message(&BTreeMap::<&str, Variant>::new()), 0), Some(vec![]));
    }

    #[test]
    fn other_bodies_are_refused() {
        assert_eq!(seen(&message(&"just a text"), 0), None);
        assert_eq!(seen(&message(&properties()), 1), None);
        assert_eq!(seen(&message(&(1u64, 2u64)), 0), None);
    }
}
