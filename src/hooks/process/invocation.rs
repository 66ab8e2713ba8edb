//! The input of a hook: its arguments, its environment, its directories.

use crate::process::credentials::Credentials;
use crate::process::finding::Finding;
use crate::process::settings::PluginSettings;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
use url::Url;

/// Added to the reason of a failure that [`Invocation::answer_time`] would have prevented.
pub const ALLOWS_MORE: &str = "(ANSWER_TIMEOUT= allows more)";

#[derive(Debug)]
pub struct Invocation {
    pub plugin: String,
    /// `--url=` without user name and password, otherwise unchanged.
    pub url: String,
    /// User name and password of `--url=`, for its server alone.
    pub credentials: Option<Credentials>,
    /// `--depth=`, else `snapshot_depth` of the context, else 0.
    pub depth: u64,
    /// The snapshot's directory: SNAP_DIR, else the parent of the working directory.
    pub snap_dir: PathBuf,
    /// EXTRA_CONTEXT, overridden by `--extra-context=`: fields that are added to every record.
    pub context: Map<String, Value>,
    pub settings: PluginSettings,
}

impl Invocation {
    /// Reads arguments of the form `--name=value` and the environment. Ignores unknown arguments
    /// and replaces bytes that are not UTF-8.
    pub fn read(
        plugin: &str,
        schema: &str,
        args: &[String],
        environment: impl IntoIterator<Item = (OsString, OsString)>,
    ) -> Invocation {
        let lossy = |text: OsString| text.to_string_lossy().into_owned();
        let environment: BTreeMap<_, _> =
            environment.into_iter().map(|(key, value)| (lossy(key), lossy(value))).collect();
        let settings = PluginSettings::new(schema, environment);
        let mut context = object(&settings.text("EXTRA_CONTEXT"));
        context.extend(object(argument(args, "extra-context").unwrap_or_default()));
        let depth = argument(args, "depth")
            .and_then(|text| text.parse().ok())
            .or_else(|| context.get("snapshot_depth").and_then(Value::as_u64));
        if let Some(id) = argument(args, "snapshot-id") {
            context.entry("snapshot_id").or_insert_with(|| Value::String(id.to_string()));
        }
        let (url, credentials) = Credentials::take(argument(args, "url").unwrap_or_default());
        Invocation {
            plugin: plugin.to_string(),
            url,
            credentials,
            depth: depth.unwrap_or(0),
            snap_dir: PathBuf::from(settings.variable("SNAP_DIR").unwrap_or("..")),
            context,
            settings,
        }
    }

    /// Prefix of the plugin's settings, such as `WGET`.
    pub fn prefix(&self) -> String {
        self.plugin.to_ascii_uppercase().replace('-', "_")
    }

    /// The URL, if its scheme is http or https.
    pub fn web_url(&self) -> Result<Url, Finding> {
        let url = Url::parse(&self.url).map_err(|error| {
            Finding::failed(format!("failed to parse the URL '{}': {error}", self.url))
        })?;
        match url.scheme() {
            "http" | "https" => Ok(url),
            other => Err(Finding::failed(format!(
                "scheme '{other}:' is not supported, only http and https"
            ))),
        }
    }

    /// Time for the hook's programs: the unit's limit minus a seventh of it or ten seconds,
    /// whichever is less, which remain to stop the programs and to print a record.
    pub fn budget(&self) -> Duration {
        let limit =
            self.settings.number(&format!("{}_TIMEOUT", self.prefix())).clamp(1, 7 * 24 * 3600)
                as f64;
        Duration::from_secs_f64(limit - (limit / 7.0).min(10.0))
    }

    /// Time that a server has for its answer, and the browser to load a page.
    pub fn answer_time(&self) -> Duration {
        Duration::from_secs(self.settings.number("ANSWER_TIMEOUT").max(1))
    }

    /// Path of a file of another plugin of the same snapshot.
    pub fn sibling(&self, plugin: &str, file: &str) -> PathBuf {
        self.snap_dir.join(plugin).join(file)
    }
}

/// Value of the first argument `--name=value`.
pub fn argument<'a>(args: &'a [String], name: &str) -> Option<&'a str> {
    args.iter().find_map(|arg| arg.strip_prefix("--")?.strip_prefix(name)?.strip_prefix('='))
}

fn object(text: &str) -> Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(map)) => map,
        _ => Map::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(args: &[&str], environment: &[(&str, &str)]) -> Invocation {
        let args: Vec<_> = args.iter().map(|arg| arg.to_string()).collect();
        let environment = environment.iter().map(|(key, value)| (key.into(), value.into()));
        Invocation::read(
            "title",
            include_str!("../../../plugins/title/config.json"),
            &args,
            environment,
        )
    }

    #[test]
    fn positional_and_unknown_arguments_are_ignored() {
        let odd = "--url=http://a.test/?q=$(reboot)&n=%n'\"\n";
        let invocation = read(&["345", odd, "--depth=2", "--event-id=7", "--verbose", "x=y"], &[]);
        assert_eq!(invocation.url, &odd["--url=".len()..]);
        assert_eq!(invocation.depth, 2);
        assert!(
            invocation.web_url().unwrap().as_str().starts_with("http://a.test/?q=$(reboot)&n=%n")
        );
    }

    #[test]
    fn depth_and_context_come_from_the_environment() {
        let invocation =
            read(&[], &[("EXTRA_CONTEXT", r#"{"snapshot_id":"9","snapshot_depth":3}"#)]);
        assert_eq!((invocation.depth, invocation.context["snapshot_id"].as_str()), (3, Some("9")));
        let invocation =
            read(&["--extra-context={\"a\":1}", "--snapshot-id=4"], &[("EXTRA_CONTEXT", "broken")]);
        assert_eq!(
            (invocation.context["a"].as_u64(), invocation.context["snapshot_id"].as_str()),
            (Some(1), Some("4"))
        );
    }

    #[test]
    fn only_http_and_https_urls_are_supported() {
        for url in ["", "example", "file:///etc/passwd", "javascript:alert(1)", "http://[bad/"] {
            assert!(read(&[&format!("--url={url}")], &[]).web_url().is_err(), "{url}");
        }
    }

    #[test]
    fn budget_ends_before_the_unit_s_limit() {
        assert_eq!(read(&[], &[("TITLE_TIMEOUT", "7")]).budget(), Duration::from_secs(6));
        assert_eq!(read(&[], &[("TITLE_TIMEOUT", "3600")]).budget(), Duration::from_secs(3590));
    }
}
