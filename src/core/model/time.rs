//! Wall-clock times, in whole milliseconds since the epoch (the resolution of the database).

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::time::Duration;

/// A wall-clock time in milliseconds since 1970-01-01T00:00:00Z. Written as RFC 3339 in JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub i64);

impl Time {
    /// Returns this time plus `duration`, saturating.
    pub fn after(self, duration: Duration) -> Time {
        Time(self.0.saturating_add(i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)))
    }

    /// Returns the time from `now` until this time; zero if it has passed.
    pub fn until(self, now: Time) -> Duration {
        Duration::from_millis(u64::try_from(self.0.saturating_sub(now.0)).unwrap_or(0))
    }

    pub fn before(self, length: Duration) -> Time {
        let millis = i64::try_from(length.as_millis()).unwrap_or(i64::MAX);
        Time(self.0.saturating_sub(millis))
    }

    /// Returns the UTC day as `YYYYMMDD`, the first segment of an output directory.
    pub fn day(self) -> String {
        self.to_jiff().strftime("%Y%m%d").to_string()
    }

    fn to_jiff(self) -> jiff::Timestamp {
        jiff::Timestamp::from_millisecond(self.0).unwrap_or(jiff::Timestamp::UNIX_EPOCH)
    }
}

impl From<jiff::Timestamp> for Time {
    fn from(value: jiff::Timestamp) -> Self {
        Time(value.as_millisecond())
    }
}

/// RFC 3339 with milliseconds, so that texts sort like times.
impl std::fmt::Display for Time {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:.3}", self.to_jiff())
    }
}

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Time {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let parsed: jiff::Timestamp = text.parse().map_err(serde::de::Error::custom)?;
        Ok(parsed.into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_rfc3339_and_round_trips() {
        let time = Time(1_795_253_105_123);
        let json = serde_json::to_string(&time).unwrap();
        assert_eq!(json, "\"2026-11-21T09:25:05.123Z\"");
        assert_eq!(serde_json::from_str::<Time>(&json).unwrap(), time);
        assert_eq!(time.day(), "20261121");
    }

    #[test]
    fn texts_have_the_order_of_their_times() {
        let texts: Vec<String> = [0, 99, 100, 157, 1000].map(|ms| Time(ms).to_string()).into();
        assert!(texts.is_sorted(), "{texts:?}");
        assert_eq!(texts[2], "1970-01-01T00:00:00.100Z");
    }

    #[test]
    fn until_never_goes_negative() {
        assert_eq!(Time(5).until(Time(9)), Duration::ZERO);
        assert_eq!(Time(9).until(Time(5)), Duration::from_millis(4));
        assert_eq!(Time(i64::MAX).after(Duration::MAX), Time(i64::MAX));
    }
}
