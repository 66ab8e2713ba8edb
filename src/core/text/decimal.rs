//! Decimal numbers in front of a unit, read without rounding.

/// A decimal number with up to six digits after the point.
#[derive(Clone, Copy)]
pub struct Decimal {
    pub whole: u64,
    pub millionths: u64,
}

impl Decimal {
    /// Reads the number at the start of `text`; returns it with the rest of the text. Digits after
    /// the sixth decimal place are dropped.
    pub fn read(text: &str) -> Option<(Decimal, &str)> {
        let digits = |t: &str| t.bytes().take_while(u8::is_ascii_digit).count();
        let (whole, rest) = text.split_at(digits(text));
        let whole = whole.parse().ok()?;
        let Some(fraction) = rest.strip_prefix('.') else {
            let number = Decimal { whole, millionths: 0 };
            return Some((number, rest));
        };
        let (fraction, rest) = fraction.split_at(digits(fraction));
        let millionths = match &fraction[..fraction.len().min(6)] {
            "" => return None,
            some => format!("{some:0<6}").parse().ok()?,
        };
        Some((Decimal { whole, millionths }, rest))
    }

    /// Returns the number times `unit`, rounded down; `None` if it exceeds 64 bits.
    pub fn times(self, unit: u64) -> Option<u64> {
        let exact = u128::from(self.millionths) * u128::from(unit) / 1_000_000;
        let part = u64::try_from(exact).ok()?;
        self.whole.checked_mul(unit)?.checked_add(part)
    }
}
