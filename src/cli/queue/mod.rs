//! What verbs share that queue pages: their URLs, the settings of a crawl, and what was queued.

pub mod urls;

use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::display::style;
use archivist_config::Scope;
use archivist_core::model::PersonaName;
use archivist_core::text::is_value_name;
use archivist_plugin::settings::general::SAME_HOST;
use archivist_shared::bus::documents::report::{AddOptions, Added};

/// Reads a setting of a plugin for a crawl.
pub fn setting(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if is_value_name(key) => Ok((key.to_owned(), value.to_owned())),
        Some((key, _)) => {
            Err(format!("'{key}' is not the name of a plugin's setting (such as WGET_TIMEOUT)"))
        }
        None => Err("expected KEY=VALUE, such as WGET_TIMEOUT=30".to_owned()),
    }
}

/// Returns the setting that keeps a crawl on the hosts of its pages.
pub fn same_host(is_set: bool) -> Option<(String, String)> {
    is_set.then(|| (SAME_HOST.to_owned(), "true".to_owned()))
}

/// Returns the setting that selects a persona.
pub fn persona(name: Option<&PersonaName>) -> impl Iterator<Item = (String, String)> {
    let setting = name.map(|name| ("ACTIVE_PERSONA".to_owned(), name.to_string()));
    setting.into_iter()
}

/// Returns the document of the options of a crawl.
pub fn encode(options: &AddOptions) -> Result<String, Failure> {
    serde_json::to_string(options)
        .map_err(|error| Failure::failed(format!("failed to write the options: {error}")))
}

/// Returns how many URLs were queued, and how many the archive has.
pub fn summary(added: &Added) -> String {
    let urls = |count: u64| match count {
        1 => "1 URL".to_owned(),
        n => format!("{n} URLs"),
    };
    let crawl = added.crawl;
    let queued = match (added.accepted, added.known) {
        (0, 1) => format!("nothing new: the archive has this URL, in {crawl}"),
        (0, known) if known > 0 => {
            format!("nothing new: the archive has all {known} URLs, the first in {crawl}")
        }
        (accepted, 0) => format!("queued {} as {crawl}", urls(accepted)),
        (accepted, known) => {
            format!("queued {} as {crawl}; the archive has {}", urls(accepted), urls(known))
        }
    };
    queued + &with_details(added.completed)
}

/// How many known pages got something from the list.
pub fn with_details(pages: u64) -> String {
    match pages {
        0 => String::new(),
        1 => "; 1 known page got tags, a title or a date".to_owned(),
        n => format!("; {n} known pages got tags, titles or dates"),
    }
}

/// Runs hooks that the pages of the archive have no result of.
pub async fn update_all(scope: &Scope) -> Result<Exit, Failure> {
    let server = Server::reach(scope).await?;
    let count = server.call_once(server.proxy().update("")).await?;
    style::print(&format!("{}\n", updated("the archive", count)))?;
    Ok(Exit::Done)
}

/// How many missing results were queued.
pub fn updated(of: &str, count: u32) -> String {
    match count {
        0 => format!("nothing to update: {of} has a result of every enabled hook"),
        1 => format!("1 missing result of {of} queued"),
        n => format!("{n} missing results of {of} queued"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_urls_are_counted() {
        let text = |accepted, known| {
            summary(&Added {
                crawl: archivist_core::model::CrawlId(5),
                accepted,
                refused: Vec::new(),
                known,
                completed: known / 2,
                joined: None,
            })
        };
        assert_eq!(text(1, 0), "queued 1 URL as c5");
        assert_eq!(
            text(3, 2),
            "queued 3 URLs as c5; the archive has 2 URLs; 1 known page got tags, a title or a date"
        );
        assert_eq!(text(0, 1), "nothing new: the archive has this URL, in c5");
        assert!(text(0, 9).contains("all 9 URLs, the first in c5; 4 known pages got tags, titles"));
    }

    #[test]
    fn settings_of_plugins() {
        assert_eq!(setting("WGET_ARGS=--a=b"), Ok(("WGET_ARGS".into(), "--a=b".into())));
        assert!(setting("WGET").is_err());
        assert!(setting("wget=1").is_err());
        assert!(setting("=1").is_err());
    }

    #[test]
    fn missing_results_are_counted() {
        assert!(updated("s3", 0).starts_with("nothing to update: s3"));
        assert_eq!(updated("s3", 1), "1 missing result of s3 queued");
        assert_eq!(updated("the archive", 7), "7 missing results of the archive queued");
    }
}
