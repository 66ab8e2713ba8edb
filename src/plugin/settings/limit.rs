//! Time limits of hooks.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::catalogue::Plugin;

/// Upper limit for all hooks, whatever their settings say.
pub const HOOK_TIME_MAX: Duration = Duration::from_secs(12 * 3600);

/// Setting for the time that a server has for its answer, in seconds.
pub const ANSWER_TIMEOUT: &str = "ANSWER_TIMEOUT";

/// Least time limit in seconds of hooks for servers that answer after this time: half of the time of a hook
/// may pass until it asks the server itself, because the browser got no answer.
pub fn limit_for(answer: u64) -> u64 {
    answer.saturating_mul(2).saturating_add(20)
}

/// Time limit of a plugin's hooks: `<PLUGIN>_TIMEOUT` in seconds, else `TIMEOUT`, else `fallback`.
/// Ignores settings in milliseconds and values that are not above zero.
pub fn timeout(
    plugin: &Plugin,
    resolved: &BTreeMap<String, Value>,
    fallback: Duration,
) -> Duration {
    let key = plugin.key("TIMEOUT");
    let own = plugin
        .schema
        .properties
        .get_key_value(&key)
        .filter(|(_, property)| !property.is_milliseconds())
        .map(|(key, _)| key.as_str());
    let seconds = |key: &str| resolved.get(key)?.as_f64().filter(|seconds| *seconds > 0.0);
    own.and_then(seconds)
        .or_else(|| seconds("TIMEOUT"))
        .map_or(fallback, |seconds| Duration::try_from_secs_f64(seconds).unwrap_or(HOOK_TIME_MAX))
        .min(HOOK_TIME_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::plugin;
    use serde_json::json;

    fn limit(name: &str, values: &[(&str, Value)]) -> u64 {
        let plugin = plugin(
            name,
            json!({"properties": {
                "YTDLP_TIMEOUT": {"type": "integer", "default": 3600},
                "MODALCLOSER_TIMEOUT": {"type": "integer", "description": "Delay before auto-closing dialogs (ms)"},
            }}),
            &[],
        );
        let values = values.iter().map(|(key, value)| ((*key).to_owned(), value.clone()));
        timeout(&plugin, &values.collect(), Duration::from_secs(33)).as_secs()
    }

    #[test]
    fn hook_limits_come_from_settings() {
        let both = [("YTDLP_TIMEOUT", json!(3600)), ("TIMEOUT", json!(60))];
        assert_eq!(limit("ytdlp", &both), 3600);
        assert_eq!(limit("wget", &both), 60, "another plugin's limit");
        assert_eq!(limit("ytdlp", &[]), 33);
        assert_eq!(limit("ytdlp", &[("TIMEOUT", json!(0))]), 33);
        assert_eq!(limit("ytdlp", &[("YTDLP_TIMEOUT", json!(1e300))]), 12 * 3600);
        let closer = [("MODALCLOSER_TIMEOUT", json!(1250)), ("TIMEOUT", json!(60))];
        assert_eq!(limit("modalcloser", &closer), 60, "1250 is milliseconds");
    }
}
