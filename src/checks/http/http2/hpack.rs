//! Headers as HTTP/2 writes them (HPACK, RFC 7541).

use super::huffman;
use std::collections::VecDeque;

/// Size of the dynamic table that the client offers, in bytes, as Chromium does.
pub const TABLE: usize = 65_536;
/// What an entry of the dynamic table counts in addition to its text (section 4.1).
const OVERHEAD: usize = 32;

/// The static table (appendix A), from index 1.
const STATIC: [(&str, &str); 61] = [
    (":authority", ""),
    (":method", "GET"),
    (":method", "POST"),
    (":path", "/"),
    (":path", "/index.html"),
    (":scheme", "http"),
    (":scheme", "https"),
    (":status", "200"),
    (":status", "204"),
    (":status", "206"),
    (":status", "304"),
    (":status", "400"),
    (":status", "404"),
    (":status", "500"),
    ("accept-charset", ""),
    ("accept-encoding", "gzip, deflate"),
    ("accept-language", ""),
    ("accept-ranges", ""),
    ("accept", ""),
    ("access-control-allow-origin", ""),
    ("age", ""),
    ("allow", ""),
    ("authorization", ""),
    ("cache-control", ""),
    ("content-disposition", ""),
    ("content-encoding", ""),
    ("content-language", ""),
    ("content-length", ""),
    ("content-location", ""),
    ("content-range", ""),
    ("content-type", ""),
    ("cookie", ""),
    ("date", ""),
    ("etag", ""),
    ("expect", ""),
    ("expires", ""),
    ("from", ""),
    ("host", ""),
    ("if-match", ""),
    ("if-modified-since", ""),
    ("if-none-match", ""),
    ("if-range", ""),
    ("if-unmodified-since", ""),
    ("last-modified", ""),
    ("link", ""),
    ("location", ""),
    ("max-forwards", ""),
    ("proxy-authenticate", ""),
    ("proxy-authorization", ""),
    ("range", ""),
    ("referer", ""),
    ("refresh", ""),
    ("retry-after", ""),
    ("server", ""),
    ("set-cookie", ""),
    ("strict-transport-security", ""),
    ("transfer-encoding", ""),
    ("user-agent", ""),
    ("vary", ""),
    ("via", ""),
    ("www-authenticate", ""),
];

/// Name and value of a header.
pub type Field = (Vec<u8>, Vec<u8>);

/// Reads header blocks of one connection.
#[derive(Debug)]
pub struct Decoder {
    /// The dynamic table, newest entry first.
    table: VecDeque<Field>,
    size: usize,
    most: usize,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder {
            table: VecDeque::new(),
            size: 0,
            // Until the server has read the client's settings, it uses 4096.
            most: 4096,
        }
    }
}

impl Decoder {
    /// Returns the headers of a block of at most `longest` bytes, names and values together, or
    /// nothing if it is damaged or longer.
    pub fn decode(&mut self, block: &[u8], longest: usize) -> Option<Vec<Field>> {
        let mut input = Input(block);
        let (mut fields, mut total) = (Vec::new(), 0);
        while let Some(first) = input.0.first().copied() {
            let field = match first {
                0x80.. => self.entry(input.integer(7)?)?,
                0x40.. => {
                    let field = self.literal(&mut input, 6)?;
                    self.insert(field.clone());
                    field
                }
                0x20.. => {
                    let most = input.integer(5)?;
                    if most > TABLE {
                        return None;
                    }
                    self.most = most;
                    self.evict();
                    continue;
                }
                _ => self.literal(&mut input, 4)?,
            };
            total += field.0.len() + field.1.len();
            if total > longest {
                return None;
            }
            fields.push(field);
        }
        Some(fields)
    }

    fn literal(&self, input: &mut Input<'_>, prefix: u32) -> Option<Field> {
        let name = match input.integer(prefix)? {
            0 => input.string()?,
            index => self.entry(index)?.0,
        };
        Some((name, input.string()?))
    }

    fn entry(&self, index: usize) -> Option<Field> {
        let index = index.checked_sub(1)?;
        match STATIC.get(index) {
            Some((name, value)) => Some((name.as_bytes().to_vec(), value.as_bytes().to_vec())),
            None => self.table.get(index - STATIC.len()).cloned(),
        }
    }

    fn insert(&mut self, field: Field) {
        self.size += size(&field);
        self.table.push_front(field);
        self.evict();
    }

    fn evict(&mut self) {
        while self.size > self.most {
            match self.table.pop_back() {
                Some(old) => self.size -= size(&old),
                None => self.size = 0,
            }
        }
    }
}

fn size(field: &Field) -> usize {
    field.0.len() + field.1.len() + OVERHEAD
}

/// The rest of a block.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// An integer whose first bits are the last `prefix` bits of a byte (section 5.1).
    fn integer(&mut self, prefix: u32) -> Option<usize> {
        let mask = (1usize << prefix) - 1;
        let mut value = usize::from(self.byte()?) & mask;
        if value < mask {
            return Some(value);
        }
        for shift in [0, 7, 14, 21] {
            let byte = self.byte()?;
            value += usize::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn string(&mut self) -> Option<Vec<u8>> {
        let is_packed = self.0.first()? & 128 != 0;
        let length = self.integer(7)?;
        let text = self.take(length)?;
        if is_packed {
            huffman::decode(text)
        } else {
            Some(text.to_vec())
        }
    }
}

/// Returns a block with these headers. It changes no table; `cookie` and `authorization` are marked,
/// so that proxies do not keep them in theirs (section 7.1.3).
pub fn encode(fields: &[(String, Vec<u8>)]) -> Vec<u8> {
    let mut block = Vec::new();
    for (name, value) in fields {
        let is_secret = matches!(name.as_str(), "authorization" | "cookie");
        block.push(if is_secret { 0x10 } else { 0 });
        for text in [name.as_bytes(), value] {
            put_integer(&mut block, text.len());
            block.extend_from_slice(text);
        }
    }
    block
}

/// Appends an integer with a prefix of 7 bits.
fn put_integer(block: &mut Vec<u8>, value: usize) {
    if value < 127 {
        return block.push(value as u8);
    }
    block.push(127);
    let mut rest = value - 127;
    while rest >= 128 {
        block.push((rest % 128) as u8 | 128);
        rest /= 128;
    }
    block.push(rest as u8);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn text(fields: &[Field]) -> Vec<String> {
        let line = |(name, value): &Field| {
            let (name, value) = (
                String::from_utf8_lossy(name),
                String::from_utf8_lossy(value),
            );
            format!("{name}: {value}")
        };
        fields.iter().map(line).collect()
    }

    fn bytes(hex: &str) -> Vec<u8> {
        let hex: String = hex.split_whitespace().collect();
        let pairs = (0..hex.len()).step_by(2);
        pairs
            .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
            .collect()
    }

    /// RFC 7541, appendix C.6: three answers, packed, with a dynamic table of 256 bytes.
    #[test]
    fn answers_of_the_rfc_are_decoded() {
        let mut decoder = Decoder {
            most: 256,
            ..Decoder::default()
        };
        let first = decoder.decode(&bytes(
            "4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
             2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3",
        ), 1000).unwrap();
        assert_eq!(
            text(&first),
            [
                ":status: 302",
                "cache-control: private",
                "date: Mon, 21 Oct 2013 20:13:21 GMT",
                "location: https://www.example.com",
            ]
        );
        let second = decoder.decode(&bytes("4883 640e ffc1 c0bf"), 1000).unwrap();
        assert_eq!(
            (text(&second)[0].as_str(), &second[1..]),
            (":status: 307", &first[1..])
        );
        let third = decoder.decode(&bytes(
            "88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
             77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
             9587 3160 65c0 03ed 4ee5 b106 3d50 07",
        ), 1000).unwrap();
        assert_eq!(
            text(&third),
            [
                ":status: 200",
                "cache-control: private",
                "date: Mon, 21 Oct 2013 20:13:22 GMT",
                "location: https://www.example.com",
                "content-encoding: gzip",
                "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
            ]
        );
        assert_eq!((decoder.table.len(), decoder.size), (3, 215));
    }

    #[test]
    fn damaged_and_long_blocks_are_refused() {
        for bad in [
            "80",
            "ff",
            "ffffffffffff7f",
            "be",
            "00",
            "0005 61",
            "3fe2 ff7f",
        ] {
            assert_eq!(Decoder::default().decode(&bytes(bad), 1000), None, "{bad}");
        }
        let bomb = [
            &bytes("4001 61 7fa1 1e")[..],
            &[b'x'; 4000][..],
            &[0xbe; 1000][..],
        ]
        .concat();
        assert_eq!(Decoder::default().decode(&bomb, 512 << 10), None);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(fields in proptest::collection::vec(("[a-z]{1,200}", proptest::collection::vec(any::<u8>(), 0..400)), 0..20)) {
            let decoded = Decoder::default().decode(&encode(&fields), usize::MAX).unwrap();
            let fields: Vec<Field> = fields.into_iter().map(|(name, value)| (name.into_bytes(), value)).collect();
            assert_eq!(decoded, fields);
        }

        #[test]
        fn no_block_is_too_odd(block in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut decoder = Decoder::default();
            let _ = decoder.decode(&block, 1000);
            assert!(decoder.size <= decoder.most);
        }
    }
}
