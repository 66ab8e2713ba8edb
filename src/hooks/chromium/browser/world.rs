//! What scripts of a page ask the browser about the world, and make addresses of: time zone, languages,
//! screen, colours and chance. A recording has it, so that the replay is in the same world, also on another
//! machine, and asks for the same URLs.

use super::viewport;
use crate::chromium::cdp::{CdpError, Session};
use crate::visit::Seed;
use archivist_warc::wacz::Wacz;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::Read;

const NUMBERS: &str = include_str!("numbers.js");
const WORLD: &str = r#"(() => {
  const { timeZone, locale } = Intl.DateTimeFormat().resolvedOptions();
  const is = (query) => matchMedia(query).matches;
  return { timeZone, locale, languages: navigator.languages, screen: [screen.width, screen.height],
    colorScheme: is("(prefers-color-scheme: dark)") ? "dark" : "light",
    reducedMotion: is("(prefers-reduced-motion: reduce)") ? "reduce" : "no-preference" };
})()"#;
/// Largest record of a world in bytes.
const WORLD_MAX_BYTES: u64 = 64 << 10;

/// The scripts by which documents and workers of a page in a browser with a seed get numbers of their own.
#[derive(Clone, Debug)]
pub struct Numbers {
    /// URL of the page, quoted.
    page: String,
    /// Workers so far, by their URLs.
    workers: BTreeMap<String, u32>,
}

impl Numbers {
    /// `page` is the URL that is recorded.
    pub fn new(page: &str) -> Numbers {
        Numbers { page: Value::from(page).to_string(), workers: BTreeMap::new() }
    }

    /// The script that must run before those of a document.
    pub fn of_document(&self) -> String {
        format!("{NUMBERS}({});", self.page)
    }

    /// The script that must run before that of the next worker of this URL.
    pub fn of_worker(&mut self, url: &str) -> String {
        // That of a blob is of chance.
        let known = ["blob:", "data:"].into_iter().find(|scheme| url.starts_with(scheme));
        let url = known.unwrap_or(url);
        let count = self.workers.entry(url.to_owned()).or_default();
        *count += 1;
        format!("{NUMBERS}({}, {});", self.page, Value::from(format!("{count} {url}")))
    }
}

/// What a recording says of the world of its page; what it does not say is that of the browser.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct World {
    /// Name in the time zone database.
    pub time_zone: Option<String>,
    /// Locale of formatted numbers and dates.
    pub locale: Option<String>,
    pub languages: Vec<String>,
    /// Width and height in pixels of CSS.
    pub viewport: Option<(u32, u32)>,
    pub screen: Option<(u32, u32)>,
    /// Pixels of the device for each of CSS.
    pub device_scale: Option<f64>,
    pub color_scheme: Option<String>,
    pub reduced_motion: Option<String>,
    /// Seed of the browser.
    pub seed: Option<Seed>,
}

impl World {
    /// Asks an empty tab whose viewport will have this size. `identity` has the parameters of
    /// `Emulation.setUserAgentOverride` that it will get.
    pub fn of(asked: &Value, viewport: (u32, u32), identity: Option<&Value>) -> World {
        let mut world: World =
            serde_json::from_value(asked["result"]["value"].clone()).unwrap_or_default();
        let languages = identity.and_then(|identity| identity["acceptLanguage"].as_str());
        if let Some(languages) = languages {
            world.languages = languages.split(',').map(|one| one.trim().to_owned()).collect();
        }
        world.viewport = Some(viewport);
        world.device_scale = Some(viewport::DEVICE_SCALE);
        world
    }

    /// Parameters of `Runtime.evaluate` for [`World::of`].
    pub fn question() -> Value {
        json!({"expression": WORLD, "returnByValue": true})
    }

    /// Name of the record of the world of a page.
    pub fn record(url: &str) -> String {
        format!("urn:world:{url}")
    }

    /// The world in which a page was recorded at this time.
    pub fn recorded(file: &Wacz, url: &str, time: Timestamp) -> World {
        let read = || {
            let name = World::record(url);
            let of_page = file.of_url(&name).into_iter();
            let away = |at: Timestamp| at.as_millisecond().abs_diff(time.as_millisecond());
            let entry = of_page.min_by_key(|entry| away(entry.time))?;
            let body = file.read(&entry).ok()?.body;
            serde_json::from_reader::<_, World>(body.take(WORLD_MAX_BYTES)).ok()
        };
        let mut world = read().unwrap_or_default();
        // The file may be anybody's.
        let bounded = |(width, height)| (viewport::bounded(width), viewport::bounded(height));
        world.viewport = world.viewport.map(bounded);
        world.screen = world.screen.map(bounded);
        world.device_scale = world.device_scale.map(|scale| scale.clamp(0.5, 4.0));
        world
    }

    /// Puts a page or a frame into this world. Chromium refuses a zone or locale that it does not know, and
    /// one that another frame of its process has already.
    pub fn emulate(&self, session: &Session) -> Result<(), CdpError> {
        if let Some(zone) = &self.time_zone {
            session.post("Emulation.setTimezoneOverride", json!({"timezoneId": zone}))?;
        }
        if let Some(locale) = &self.locale {
            session.post("Emulation.setLocaleOverride", json!({"locale": locale}))?;
        }
        let features = [
            ("prefers-color-scheme", &self.color_scheme),
            ("prefers-reduced-motion", &self.reduced_motion),
        ];
        let features = features
            .into_iter()
            .filter_map(|(name, value)| Some(json!({"name": name, "value": value.as_ref()?})));
        let features: Vec<_> = features.collect();
        if features.is_empty() {
            return Ok(());
        }
        session.post("Emulation.setEmulatedMedia", json!({"features": features}))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seed_of_a_foreign_file_is_one_of_v8() {
        let read = |text| serde_json::from_str::<World>(text).map(|world| world.seed).ok();
        assert_eq!(read(r#"{"seed": 7}"#), Some(Seed::try_from(7).ok()));
        for other in [r#"{"seed": 0}"#, r#"{"seed": 2147483648}"#, r#"{"seed": "7 --x"}"#] {
            assert_eq!(read(other), None, "{other}");
        }
    }

    #[test]
    fn each_worker_has_its_number() {
        let mut numbers = Numbers::new("http://a.test/\"");
        let ends: Vec<_> = ["http://a.test/w.js", "http://a.test/w.js", "blob:1", "blob:2"]
            .map(|url| numbers.of_worker(url).rsplit_once('(').unwrap().1.to_owned())
            .into();
        let page = r#""http://a.test/\"""#;
        let expected = ["1 http://a.test/w.js", "2 http://a.test/w.js", "1 blob:", "2 blob:"];
        assert_eq!(ends, expected.map(|worker| format!("{page}, \"{worker}\");")));
    }
}
