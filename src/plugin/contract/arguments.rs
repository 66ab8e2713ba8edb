//! Builds the command line of a hook. Every value is one argument, and no shell is involved.

use serde_json::Value;

use crate::catalogue::Hook;
use crate::catalogue::name::HookFamily;
use crate::programs::requirement::Requirement;

/// The crawl or snapshot that a hook runs for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookTarget<'a> {
    /// URL of the snapshot, or the first URL of the crawl.
    pub url: &'a str,
    /// All URLs of the crawl.
    pub urls: &'a [String],
    /// Id of the snapshot.
    pub snapshot_id: &'a str,
    /// Id of the crawl.
    pub crawl_id: &'a str,
    /// Depth of the snapshot.
    pub depth: u32,
}

/// The program that a provider hook should find or install.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct BinaryRequest {
    /// The program, its version and its providers.
    pub requirement: Requirement,
    /// Id of the request, copied into the record of the program.
    pub binary_id: String,
    /// Id of the machine, copied into the record of the program.
    pub machine_id: String,
    /// The plugin that requires the program.
    pub plugin_name: String,
    /// Name of the provider hook.
    pub hook_name: String,
    /// Path of the directory that the hook writes to.
    pub output_dir: String,
}

/// Longest list of URLs in bytes; further URLs are omitted. The kernel limits an argument to 128
/// KiB (execve(2)).
const LIST_MAX_BYTES: usize = 120 * 1024;

/// Argument vector of a crawl or snapshot hook, including the program.
///
/// Snapshot hooks get the arguments of both generations, because hooks ignore unknown arguments.
/// For provider hooks see [`request_argv`].
pub fn argv(hook: &Hook, target: &HookTarget) -> Vec<String> {
    let mut line = Line::of(hook);
    match hook.name.family {
        HookFamily::CrawlSetup | HookFamily::CrawlCleanup => line.value("url", target.url),
        HookFamily::Snapshot | HookFamily::SnapshotCleanup => {
            line.value("url", target.url);
            line.value("snapshot-id", target.snapshot_id);
            line.value("crawl-id", target.crawl_id);
            line.value("depth", &target.depth.to_string());
        }
        HookFamily::Crawl | HookFamily::CrawlEnd => {
            line.value("crawl-id", target.crawl_id);
            line.value("source-url", &joined(target.urls));
            line.value("url", target.url);
            line.value("snapshot-id", target.crawl_id);
        }
        HookFamily::BinaryRequest | HookFamily::Binary => {}
    }
    line.0
}

/// Argument vector of a provider hook of either generation.
pub fn request_argv(hook: &Hook, request: &BinaryRequest) -> Vec<String> {
    let mut line = Line::of(hook);
    let Requirement { name, providers, min_version, overrides } = &request.requirement;
    let overrides = if overrides.is_empty() {
        String::new()
    } else {
        Value::Object(overrides.clone()).to_string()
    };
    line.value("name", name);
    line.value("binproviders", &providers.join(","));
    line.value("overrides", &overrides);
    line.value("binary-id", &request.binary_id);
    line.value("machine-id", &request.machine_id);
    if hook.name.family == HookFamily::BinaryRequest {
        line.value("min-version", min_version.as_deref().unwrap_or_default());
        line.value("plugin-name", &request.plugin_name);
        line.value("hook-name", &request.hook_name);
        line.value("output-dir", &request.output_dir);
    }
    line.0
}

struct Line(Vec<String>);

impl Line {
    fn of(hook: &Hook) -> Line {
        let file = hook.file.to_string_lossy().into_owned();
        Line(match hook.interpreter {
            None => vec![file],
            // env(1) searches the hook's own PATH, unlike the service manager.
            Some(interpreter) => vec!["/usr/bin/env".to_owned(), interpreter.to_owned(), file],
        })
    }

    /// Appends `--key=value`. Omits empty values, and removes NULs, which arguments cannot contain.
    fn value(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.0.push(format!("--{key}={}", value.replace('\0', "")));
        }
    }
}

/// The URLs separated by line feeds, as many as fit.
fn joined(urls: &[String]) -> String {
    let mut text = String::new();
    for url in urls {
        if text.len() + url.len() + 1 > LIST_MAX_BYTES {
            break;
        }
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(url);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;
    use proptest::prelude::*;

    fn hook(file: &str, interpreter: Option<&'static str>) -> Hook {
        Hook { interpreter, ..sample::hook("p", file) }
    }

    fn target<'a>(url: &'a str, urls: &'a [String]) -> HookTarget<'a> {
        HookTarget { url, urls, snapshot_id: "345", crawl_id: "12", depth: 1 }
    }

    #[test]
    fn each_family_gets_its_arguments() {
        let urls = ["https://a/".to_owned(), "https://b/".to_owned()];
        let of = |file| argv(&hook(file, None), &target("https://a/", &urls)).split_off(1);
        assert_eq!(of("on_CrawlSetup__90_x.js"), ["--url=https://a/"]);
        assert_eq!(
            of("on_Snapshot__06_wget.py"),
            ["--url=https://a/", "--snapshot-id=345", "--crawl-id=12", "--depth=1"]
        );
        let crawl = [
            "--crawl-id=12",
            "--source-url=https://a/\nhttps://b/",
            "--url=https://a/",
            "--snapshot-id=12",
        ];
        assert_eq!(of("on_Crawl__10_x.py"), crawl);
        assert_eq!(of("on_CrawlEnd__10_x.py"), crawl);
    }

    #[test]
    fn interpreter_precedes_the_hook() {
        let target = target("", &[]);
        assert_eq!(
            argv(&hook("on_CrawlSetup__1_x.js", None), &target),
            ["/plugins/p/on_CrawlSetup__1_x.js"]
        );
        let older = argv(&hook("on_Snapshot__1_x.py", Some("python3")), &target);
        assert_eq!(older[..3], ["/usr/bin/env", "python3", "/plugins/p/on_Snapshot__1_x.py"]);
    }

    #[test]
    fn provider_hooks_get_the_request() {
        let overrides = serde_json::json!({"apt": {"install_args": ["nodejs"]}});
        let request = BinaryRequest {
            requirement: Requirement {
                name: "node".into(),
                providers: vec!["env".into(), "apt".into()],
                min_version: None,
                overrides: overrides.as_object().unwrap().clone(),
            },
            binary_id: "b1".into(),
            machine_id: "m1".into(),
            plugin_name: "chrome".into(),
            ..BinaryRequest::default()
        };
        let common = [
            "--name=node",
            "--binproviders=env,apt",
            r#"--overrides={"apt":{"install_args":["nodejs"]}}"#,
            "--binary-id=b1",
            "--machine-id=m1",
        ];
        let older = request_argv(&hook("on_Binary__13_apt.py", None), &request).split_off(1);
        assert_eq!(older, common);
        let modern =
            request_argv(&hook("on_BinaryRequest__13_apt.py", None), &request).split_off(1);
        assert_eq!(modern[..5], common);
        assert_eq!(modern[5..], ["--plugin-name=chrome"]);
    }

    #[test]
    fn long_list_is_cut_after_a_whole_url() {
        let urls: Vec<String> = (0..100_000).map(|n| format!("https://example.com/{n}")).collect();
        let line = argv(&hook("on_Crawl__10_x.py", None), &target(&urls[0], &urls));
        assert!(line[2].len() < 128 * 1024 && line[2].ends_with(|c: char| c.is_ascii_digit()));
        assert!(urls.contains(&line[2].rsplit('\n').next().unwrap().to_owned()));
    }

    proptest! {
        #[test]
        fn any_url_is_one_argument(url in "\\PC{1,80}|[$`'\"%\n\\\\;{}()]{1,40}") {
            let line = argv(&hook("on_Snapshot__06_wget.py", None), &target(&url, &[]));
            prop_assert_eq!(line.len(), 5);
            prop_assert_eq!(&line[1], &format!("--url={url}"));
        }
    }
}
