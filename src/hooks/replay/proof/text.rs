//! How similar two texts are.

use std::collections::HashMap;

/// The share of pairs of neighbouring words that two texts have in common (Dice's coefficient), from 0
/// to 1. Blanks do not matter. Takes time in proportion to the length of both.
pub fn similarity(one: &str, other: &str) -> f64 {
    let mut pairs: HashMap<(&str, &str), usize> = HashMap::new();
    let (mut count, mut common) = (0, 0);
    for pair in neighbours(one) {
        *pairs.entry(pair).or_default() += 1;
        count += 1;
    }
    for pair in neighbours(other) {
        count += 1;
        if let Some(left) = pairs.get_mut(&pair).filter(|left| **left > 0) {
            *left -= 1;
            common += 2;
        }
    }
    f64::from(common) / f64::from(count)
}

/// Each word with the next one. The begin and the end of the text count as words.
fn neighbours(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let words = || text.split_whitespace();
    std::iter::once("").chain(words()).zip(words().chain([""]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_and_number_of_words_matter() {
        assert_eq!(similarity("", ""), 1.0);
        assert_eq!(similarity("a  b\nc", "a b c"), 1.0);
        assert_eq!(similarity("a", ""), 0.0);
        assert_eq!(similarity("a b", "b a"), 0.0);
        let long: String = (0..99).map(|n| format!("{n} ")).collect();
        let changed = long.replace(" 50 ", " x ");
        let one_word = similarity(&long, &changed);
        assert!((one_word - 0.98).abs() < 1e-9, "{one_word}");
        assert!(similarity("a a a", "a") < 0.7);
    }
}
