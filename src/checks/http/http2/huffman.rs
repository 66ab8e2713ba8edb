//! The Huffman code of header strings (RFC 7541, appendix B).
//!
//! The code is canonical: codes of one length are consecutive, in the order of their symbols, so the
//! lengths define it.

use std::sync::LazyLock;

/// Length of the code of each byte, in bits.
const LENGTHS: [u8; 256] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6, 5, 5,
    5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6, 15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6,
    6, 5, 6, 7, 6, 5, 5, 6, 7, 7, 7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22,
    23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22,
    21, 20, 22, 22, 23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20,
    22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19,
    21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22,
    22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26,
];
/// Longest code, in bits.
const LONGEST: usize = 30;

/// The codes of one length.
#[derive(Clone, Copy, Default)]
struct Codes {
    /// The first code.
    first: u32,
    /// Number of codes.
    count: u32,
    /// Index of the symbol of the first code.
    at: usize,
}

struct Table {
    by_length: [Codes; LONGEST + 1],
    /// Bytes in the order of their codes.
    symbols: Vec<u8>,
}

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    let mut table = Table {
        by_length: [Codes::default(); LONGEST + 1],
        symbols: Vec::with_capacity(LENGTHS.len()),
    };
    let mut code = 0;
    for length in 1..=LONGEST {
        code <<= 1;
        let at = table.symbols.len();
        let own = (0..=u8::MAX).filter(|byte| usize::from(LENGTHS[usize::from(*byte)]) == length);
        table.symbols.extend(own);
        let count = (table.symbols.len() - at) as u32;
        table.by_length[length] = Codes {
            first: code,
            count,
            at,
        };
        code += count;
    }
    table
});

/// Returns the decoded string. Fails for the symbol that ends strings, and if what follows the last
/// code is neither empty nor its beginning: at most 7 bits, all 1.
pub fn decode(bytes: &[u8]) -> Option<Vec<u8>> {
    let table = &*TABLE;
    let mut out = Vec::with_capacity(bytes.len() * 2);
    let (mut code, mut length) = (0u32, 0);
    for bit in bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |at| byte >> at & 1))
    {
        code = code << 1 | u32::from(bit);
        length += 1;
        let codes = table.by_length.get(length)?;
        if let Some(index) = code.checked_sub(codes.first).filter(|it| *it < codes.count) {
            out.push(*table.symbols.get(codes.at + index as usize)?);
            (code, length) = (0, 0);
        }
    }
    (length < 8 && code == (1 << length) - 1).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Examples of RFC 7541, appendix C.4 and C.6.
    #[test]
    fn strings_of_the_rfc_are_decoded() {
        let www = [
            0xf1, 0xe3, 0xc2, 0xe5, 0xf2, 0x3a, 0x6b, 0xa0, 0xab, 0x90, 0xf4, 0xff,
        ];
        assert_eq!(decode(&www).unwrap(), b"www.example.com");
        assert_eq!(
            decode(&[0xa8, 0xeb, 0x10, 0x64, 0x9c, 0xbf]).unwrap(),
            b"no-cache"
        );
        assert_eq!(decode(&[0x64, 0x02]).unwrap(), b"302");
        assert_eq!(decode(&[]).unwrap(), b"");
        // Padding of 8 bits, padding of zeros, the end symbol.
        for bad in [
            &[0x64, 0x02, 0xff][..],
            &[0x64, 0x02, 0x00],
            &[0xff, 0xff, 0xff, 0xff],
        ] {
            assert_eq!(decode(bad), None, "{bad:x?}");
        }
    }

    /// The code of a byte, from the same table.
    fn encode(text: &[u8]) -> Vec<u8> {
        let table = &*TABLE;
        let (mut bits, mut out) = (String::new(), Vec::new());
        for byte in text {
            let length = usize::from(LENGTHS[usize::from(*byte)]);
            let codes = table.by_length[length];
            let index = table.symbols[codes.at..].iter().position(|it| it == byte);
            let code = codes.first + index.unwrap() as u32;
            bits.push_str(&format!("{code:0length$b}"));
        }
        while !bits.len().is_multiple_of(8) {
            bits.push('1');
        }
        for at in (0..bits.len()).step_by(8) {
            out.push(u8::from_str_radix(&bits[at..at + 8], 2).unwrap());
        }
        out
    }

    proptest! {
        #[test]
        fn all_bytes_have_a_code(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            assert_eq!(decode(&encode(&text)).unwrap(), text);
        }

        #[test]
        fn no_string_is_too_odd(text in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = decode(&text);
        }
    }
}
