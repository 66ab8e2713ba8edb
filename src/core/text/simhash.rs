//! SimHash of a text: similar texts have hashes that differ in few bits (M. Charikar, "Similarity
//! estimation techniques from rounding algorithms", 2002).

use std::f64::consts::PI;

const BITS: u32 = u64::BITS;

/// Returns the hash of the words of a text, in which each word counts as often as it occurs. Case,
/// punctuation and the order of words do not count. Scripts without blanks count by pairs of
/// characters. A text without words has the hash 0.
pub fn simhash(text: &str) -> u64 {
    let mut sums = [0i32; BITS as usize];
    let mut add = |word: &str| {
        let hash = hash(word);
        for (bit, sum) in sums.iter_mut().enumerate() {
            *sum += if hash >> bit & 1 == 1 { 1 } else { -1 };
        }
    };
    let mut lower = String::new();
    for word in text.split(|c: char| !c.is_alphanumeric()) {
        lower.clear();
        lower.extend(word.chars().flat_map(char::to_lowercase));
        if !lower.chars().any(has_no_blanks) {
            if !lower.is_empty() {
                add(&lower);
            }
            continue;
        }
        let starts: Vec<usize> = lower.char_indices().map(|(at, _)| at).collect();
        for at in 0..starts.len().saturating_sub(1).max(1) {
            let end = starts.get(at + 2).copied().unwrap_or(lower.len());
            add(&lower[starts[at]..end]);
        }
    }
    let bits = sums.iter().enumerate();
    bits.fold(0, |hash, (bit, sum)| hash | u64::from(*sum > 0) << bit)
}

/// Returns how similar two texts with these hashes are, in percent: the estimated cosine of the angle
/// between their counts of words.
pub fn similarity(one: u64, other: u64) -> u32 {
    let differing = f64::from((one ^ other).count_ones());
    let cosine = (PI * differing / f64::from(BITS)).cos().max(0.0);
    (cosine * 100.0).round() as u32
}

/// Whether words are not separated in the script of this character: Chinese, Japanese, Thai, Lao,
/// Burmese and Khmer.
fn has_no_blanks(c: char) -> bool {
    matches!(u32::from(c),
        0x0e00..=0x0eff | 0x1000..=0x109f | 0x1780..=0x17ff | 0x3040..=0x30ff | 0x3400..=0x4dbf
        | 0x4e00..=0x9fff | 0xf900..=0xfaff | 0x20000..=0x3ffff)
}

/// FNV-1a with the finalizer of MurmurHash3: it is stored, so it never changes.
fn hash(word: &str) -> u64 {
    let fnv = word.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    let mix = |hash: u64, factor: u64| (hash ^ hash >> 33).wrapping_mul(factor);
    let mixed = mix(mix(fnv, 0xff51_afd7_ed55_8ccd), 0xc4ce_b9fe_1a85_ec53);
    mixed ^ mixed >> 33
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(from: u32, to: u32) -> String {
        let words: Vec<String> = (from..to).map(|n| format!("word{n}")).collect();
        words.join(" ")
    }

    #[test]
    fn similar_texts_have_similar_hashes() {
        let text = words(0, 400);
        let with = |other: &str| similarity(simhash(&text), simhash(other));
        assert_eq!(with(&text.replace(' ', ", ").to_uppercase()), 100);
        let (near, half, other) =
            (with(&words(20, 400)), with(&words(200, 600)), with(&words(400, 800)));
        assert!((90..100).contains(&near), "{near}");
        assert!((30..75).contains(&half), "{half}");
        assert!(other < 30, "{other}");
    }

    #[test]
    fn stored_hashes_stay_valid() {
        assert_eq!(simhash(""), 0);
        assert_eq!(simhash("To be, or not to be"), simhash("be not or to to be"));
        assert_eq!(simhash("a"), 0x82a2_a958_a9be_ce5b);
        assert_ne!(simhash("東京都"), simhash("京都東"));
    }

    proptest::proptest! {
        #[test]
        fn any_text_has_a_hash_that_is_like_itself(text in ".*") {
            let hash = simhash(&text);
            proptest::prop_assert_eq!(similarity(hash, hash), 100);
        }
    }
}
