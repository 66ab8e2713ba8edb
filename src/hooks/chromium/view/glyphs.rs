//! Scripts of a page for which the machine has no font, so that pictures show boxes.

use super::TabView;
use std::collections::BTreeSet;

const SCRIPT: &str = include_str!("glyphs.js");
/// Pieces of text of a page that are looked at.
const NODES_MAX: u32 = 50_000;

/// Returns a remark about the scripts that the page shows as boxes, such as Han, with the packages of
/// Debian that have their fonts. The fonts of the page itself count. What fails is only logged.
pub async fn missing_fonts(view: &TabView) -> Option<String> {
    match view.evaluate(SCRIPT, &[NODES_MAX.into()]).await {
        Ok(missing) => {
            let missing: Vec<(String, String)> =
                serde_json::from_value(missing).unwrap_or_default();
            note(&missing)
        }
        Err(error) => {
            eprintln!("failed to look for missing fonts: {error}, ignoring");
            None
        }
    }
}

/// `missing`: scripts and packages.
fn note(missing: &[(String, String)]) -> Option<String> {
    let scripts: Vec<&str> = missing.iter().map(|(script, _)| script.as_str()).collect();
    let packages: BTreeSet<&str> = missing.iter().map(|(_, fonts)| fonts.as_str()).collect();
    let packages: Vec<&str> = packages.into_iter().collect();
    (!missing.is_empty()).then(|| {
        format!(
            "no font for {}, shown as boxes: apt install {}",
            scripts.join(", "),
            packages.join(" ")
        )
    })
}

#[cfg(test)]
mod tests {
    use super::note;

    #[test]
    fn remark_names_scripts_and_packages_once() {
        let missing =
            [("Han", "fonts-noto-cjk"), ("Thai", "fonts-noto-core"), ("Hangul", "fonts-noto-cjk")];
        let missing = missing.map(|(script, fonts)| (script.to_owned(), fonts.to_owned()));
        assert_eq!(
            note(&missing).as_deref(),
            Some(
                "no font for Han, Thai, Hangul, shown as boxes: apt install fonts-noto-cjk fonts-noto-core"
            )
        );
        assert_eq!(note(&[]), None);
    }
}
