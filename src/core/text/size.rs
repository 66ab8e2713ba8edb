//! Sizes in bytes, to the base of 1024.

use super::decimal::Decimal;

/// What [`parse_size`] accepts, for error messages.
pub const SIZE_ALLOWED: &str = "a size in bytes, or with K, M, G or T (1024-based) like 64M";

const UNITS: [(char, u64); 4] = [('T', 1 << 40), ('G', 1 << 30), ('M', 1 << 20), ('K', 1 << 10)];

/// Reads a size in bytes: `4096`, `64M`, `1.5 GB`, `10KiB`. Units count in 1024s; upper and lower
/// case are the same. A number of bytes must be whole: `0.5` would be no bytes, which many settings
/// read as "no limit".
pub fn parse_size(text: &str) -> Option<u64> {
    let (number, suffix) = Decimal::read(text.trim())?;
    let unit = match suffix.trim_start().to_ascii_uppercase().as_str() {
        "" | "B" if number.millionths == 0 => 1,
        "K" | "KB" | "KIB" => 1 << 10,
        "M" | "MB" | "MIB" => 1 << 20,
        "G" | "GB" | "GIB" => 1 << 30,
        "T" | "TB" | "TIB" => 1 << 40,
        _ => return None,
    };
    number.times(unit)
}

/// Returns a size that [`parse_size`] reads back exactly, with the largest unit that divides it:
/// `64M`.
pub fn exact_size(bytes: u64) -> String {
    let fits = |unit: u64| bytes >= unit && bytes.is_multiple_of(unit);
    match UNITS.iter().find(|(_, unit)| fits(*unit)) {
        Some((name, unit)) => format!("{}{name}", bytes / unit),
        None => bytes.to_string(),
    }
}

/// Returns a size rounded for people, as systemctl(1) prints it: `12.5M`.
pub fn human_size(bytes: u64) -> String {
    const UNITS: [&str; 5] = ["K", "M", "G", "T", "P"];
    if bytes < 1024 {
        return format!("{bytes}B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut unit = 0;
    while value >= 1023.95 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    format!("{value:.1}{}", UNITS[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parse_size_accepts_units_of_1024_in_any_case() {
        for (text, want) in [
            ("0", 0),
            ("12", 12),
            ("4096", 4096),
            ("64M", 64 << 20),
            ("1.5G", 3 << 29),
            ("1.5 KB", 1536),
            ("10 KB", 10 << 10),
            ("2MiB", 2 << 20),
            ("1g", 1 << 30),
            ("7B", 7),
        ] {
            assert_eq!(parse_size(text), Some(want), "{text}");
        }
    }

    #[test]
    fn parse_size_refuses_nonsense_and_overflow() {
        for bad in ["", "M", "many", "64X", "-1", "1 2", "0.5", "1.5 b", "1.", "99999999T"] {
            assert_eq!(parse_size(bad), None, "{bad}");
        }
    }

    #[test]
    fn human_size_keeps_one_decimal_place() {
        let shown = [0, 1023, 1024, 1_048_575, 13_107_200].map(human_size);
        assert_eq!(shown, ["0B", "1023B", "1.0K", "1.0M", "12.5M"]);
        assert!(human_size(u64::MAX).ends_with('P'));
    }

    proptest::proptest! {
        #[test]
        fn exact_size_reads_back_and_no_text_panics(bytes: u64, text in ".{0,40}", near in "[0-9.]{0,400} ?[a-zA-Z]{0,4}") {
            assert_eq!(parse_size(&exact_size(bytes)), Some(bytes));
            assert_eq!(parse_size(&bytes.to_string()), Some(bytes));
            let _ = (parse_size(&text), parse_size(&near));
        }
    }
}
