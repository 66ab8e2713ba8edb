//! The options of `archivist run` as options of a new crawl.

use super::RunArgs;
use crate::queue::{persona, same_host};
use archivist_shared::bus::documents::report::AddOptions;

impl RunArgs {
    /// Settings of the crawl. `--set` overrides the other options.
    pub fn options(&self) -> AddOptions {
        let number = |value: Option<u32>| value.map(|value| value.to_string());
        let short = [
            ("TIMEOUT", number(self.timeout)),
            ("CRAWL_MAX_URLS", number(self.max_urls)),
            ("CRAWL_MAX_SIZE", self.crawl_max_size.clone()),
            ("CRAWL_TIMEOUT", number(self.crawl_timeout)),
            ("SNAPSHOT_MAX_SIZE", self.snapshot_max_size.clone()),
        ];
        let short = short.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?)));
        let disabled = self.disable.iter().map(|plugin| {
            let name: String = plugin
                .trim()
                .chars()
                .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
                .collect();
            (format!("{name}_ENABLED"), "false".to_owned())
        });
        AddOptions {
            depth: self.depth,
            tags: self.tags.clone(),
            plugins: self.plugins.clone(),
            config: short
                .chain(disabled)
                .chain(persona(self.persona.as_ref()))
                .chain(same_host(self.same_host))
                .chain(self.settings.iter().cloned())
                .collect(),
            only_new: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Task;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: RunArgs,
    }

    #[test]
    fn options_are_short_for_settings() {
        let words = "run --timeout 5 --max-urls 3 --crawl-max-size 1.5M --crawl-timeout 60 \
                     --snapshot-max-size 10k --disable wget,my-own --same-host --set TIMEOUT=7 http://x/";
        let line = Line::try_parse_from(words.split_whitespace()).unwrap();
        let options = line.args.options();
        let config: Vec<String> =
            options.config.iter().map(|(key, value)| format!("{key}={value}")).collect();
        assert_eq!(
            config.join(" "),
            "CRAWL_MAX_SIZE=1.5M CRAWL_MAX_URLS=3 CRAWL_SAME_HOST=true CRAWL_TIMEOUT=60 MY_OWN_ENABLED=false \
             SNAPSHOT_MAX_SIZE=10k TIMEOUT=7 WGET_ENABLED=false"
        );
        assert!(Line::try_parse_from(["run", "--crawl-id", "c1", "http://x/"]).is_err());
    }

    #[test]
    fn the_last_of_install_and_no_install_applies() {
        let installs = |words: &str| {
            let line = Line::try_parse_from(words.split(' ')).unwrap();
            line.args.install
        };
        assert!(!installs("run --no-install http://x/"));
        assert!(!installs("run --install --no-install http://x/"));
        assert!(installs("run --no-install --install http://x/"));
    }

    #[test]
    fn a_single_url_of_a_task_names_it() {
        let task = |words: &str| Line::try_parse_from(words.split(' ')).unwrap().args.task();
        assert_eq!(task("run archivebox://update"), Some(Task::Update));
        assert_eq!(task("run archivebox://install"), Some(Task::Install));
        assert_eq!(task("run archivebox://update http://x/"), None);
        assert_eq!(task("run http://x/"), None);
    }
}
