//! Sizes as people write them.

/// Reads a size: a number without a unit is whole and in bytes; `b`, `k`, `kb`, `kib` and so on up to `t` count in 1024s.
pub fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    let digits = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let power = match unit.trim() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        _ => return None,
    };
    if power == 0 {
        return number.parse().ok();
    }
    Some((number.parse::<f64>().ok()? * 1024f64.powi(power)) as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_units_of_1024() {
        assert_eq!(parse_size("0"), Some(0));
        assert_eq!(parse_size("12"), Some(12));
        assert_eq!(parse_size("1.5 KB"), Some(1536));
        assert_eq!(parse_size("2MiB"), Some(2 << 20));
        assert_eq!(parse_size("1g"), Some(1 << 30));
        assert_eq!(parse_size("many"), None);
        // Of what? It would be no byte, and so no limit.
        assert_eq!(parse_size("0.5"), None);
        assert_eq!(parse_size("1.5 b"), None);
        assert_eq!(parse_size("-1"), None);
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_survived_and_whole_numbers_are_exact(text in ".{0,30}", near in "[0-9.]{0,400} ?[a-zA-Z]{0,4}", bytes in 0u64..1 << 53) {
            let _ = (parse_size(&text), parse_size(&near));
            assert_eq!(parse_size(&bytes.to_string()), Some(bytes));
            assert_eq!(parse_size(&format!("{} KiB", bytes >> 10)), Some(bytes >> 10 << 10));
        }
    }
}
