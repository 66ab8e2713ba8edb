//! What the figures of a recording, and those of its replay, say.

use super::Figures;

/// Plugin that records pages.
pub const RECORDER: &str = "wacz";
/// Plugin that compares replays with recordings.
pub const VERIFIER: &str = "verify";

/// Least [`fidelity`] of a replay that holds.
pub const REPLAY_HOLDS: f64 = 0.95;

/// A share in percent, rounded down: 100 % means all.
pub fn in_percent(share: f64) -> String {
    format!("{:.1} %", (share * 1000.0).floor() / 10.0)
}

/// `52 of 53 requests`; `None` if the recorder stated no figures.
pub fn recording_text(figures: &Figures) -> Option<String> {
    let (all, kept) = (figures.get("requests")?, figures.get("kept")?);
    Some(format!("{kept} of {all} requests"))
}

/// `100.0 % of resources answered (52 exactly, 1 by a rule, 0 not recorded), text 100.0 %, picture
/// 99.9 %`; `None` if the verifier stated no figures. Names the parts that the recording has not, so that they
/// were not compared.
pub fn replay_text(figures: &Figures) -> Option<String> {
    let count = |name: &str| figures.get(name).unwrap_or_default();
    let mut text = format!(
        "{} of resources answered ({} exactly, {} by a rule, {} not recorded)",
        in_percent(figures.get("resources")?),
        count("exact"),
        count("fuzzy"),
        count("missing"),
    );
    for part in ["text", "picture"] {
        let share = figures.get(part).map_or_else(|| "not recorded".to_owned(), in_percent);
        text.push_str(&format!(", {part} {share}"));
    }
    Some(text)
}

/// The lowest share of a replay, from 0 to 1; `None` if there is none.
pub fn fidelity(figures: &Figures) -> Option<f64> {
    figures.get("fidelity")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn figures(of: serde_json::Value) -> Figures {
        Figures::of(of.as_object().unwrap())
    }

    #[test]
    fn figures_are_stated_in_words() {
        let recording = figures(json!({"requests": 53, "kept": 52}));
        assert_eq!(recording_text(&recording).unwrap(), "52 of 53 requests");
        let replay = figures(json!({"resources": 0.98999, "exact": 98, "missing": 1, "text": 1}));
        assert_eq!(
            replay_text(&replay).unwrap(),
            "98.9 % of resources answered (98 exactly, 0 by a rule, 1 not recorded), text 100.0 %, \
             picture not recorded"
        );
        assert_eq!(recording_text(&Figures::default()), None);
        assert_eq!(replay_text(&Figures::default()), None);
    }
}
