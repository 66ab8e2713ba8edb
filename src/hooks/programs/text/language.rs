//! The language of a text, as its tag in HTML (BCP 47).

use whatlang::Lang;

/// Characters of a text from which its language is found.
const SAMPLE_CHARS: usize = 4000;

/// Returns the language of a text, such as `en`: as its letters and words show if that is beyond
/// doubt, else as the document declares it. Declarations are often those of a template.
pub fn of(text: &str, declared: Option<&str>) -> Option<String> {
    let end = text.char_indices().nth(SAMPLE_CHARS).map_or(text.len(), |(at, _)| at);
    let found = whatlang::detect(&text[..end]).filter(whatlang::Info::is_reliable);
    found.map(|found| tag(found.lang())).or_else(|| declared.and_then(primary))
}

/// The first part of a declared tag: `pt` of `pt-BR`.
fn primary(declared: &str) -> Option<String> {
    let first = declared.trim().split(['-', '_']).next().unwrap_or_default();
    let is_tag = (2..=3).contains(&first.len()) && first.bytes().all(|b| b.is_ascii_alphabetic());
    is_tag.then(|| first.to_ascii_lowercase())
}

/// The shortest code of a language (ISO 639-1), as BCP 47 demands. Those without one have three
/// letters.
fn tag(language: Lang) -> String {
    let code = language.code();
    let short = match code {
        "cmn" => "zh",
        "deu" => "de",
        "spa" => "es",
        "por" => "pt",
        "ell" => "el",
        "ces" => "cs",
        "slk" => "sk",
        "swe" => "sv",
        "est" => "et",
        "pol" => "pl",
        "tur" => "tr",
        "ukr" => "uk",
        "kat" => "ka",
        "heb" => "he",
        "yid" => "yi",
        "jav" => "jv",
        "nob" => "nb",
        "nld" => "nl",
        "mar" => "mr",
        "slv" => "sl",
        "srp" => "sr",
        "mkd" => "mk",
        "lit" => "lt",
        "lav" => "lv",
        "tam" => "ta",
        "urd" => "ur",
        "pan" => "pa",
        "ind" => "id",
        "tel" => "te",
        "pes" => "fa",
        "mal" => "ml",
        "mya" => "my",
        "khm" => "km",
        "tuk" => "tk",
        "aka" => "ak",
        "sna" => "sn",
        "tgl" => "tl",
        "hye" => "hy",
        "cym" => "cy",
        "bel" => "be",
        "bul" => "bg",
        "ben" => "bn",
        "kan" => "kn",
        "ron" => "ro",
        "uzb" => "uz",
        "aze" => "az",
        "epo" => "eo",
        "jpn" => "ja",
        "kor" => "ko",
        code => &code[..2],
    };
    short.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn language_is_that_of_the_text_and_else_the_declared_one() {
        let german = "Der schnelle braune Fuchs springt über den faulen Hund, und alle anderen Tiere \
            des Waldes schauen ihm dabei mit großem Vergnügen zu.";
        assert_eq!(of(german, Some("en")).as_deref(), Some("de"));
        assert_eq!(of("数据库的备份和恢复是管理员的重要工作", None).as_deref(), Some("zh"));
        assert_eq!(of("これは日本語の文章です。", Some("en")).as_deref(), Some("ja"));
        assert_eq!(of("42", Some("pt-BR")).as_deref(), Some("pt"));
        for declared in [None, Some(""), Some("x"), Some("<b>"), Some("english")] {
            assert_eq!(of("42", declared), None, "{declared:?}");
        }
    }

    /// Two languages must not have one tag, and no tag another language.
    #[test]
    fn tags_of_languages_are_different() {
        let mut tags: Vec<String> = Lang::all().iter().map(|lang| tag(*lang)).collect();
        let count = tags.len();
        tags.sort();
        tags.dedup();
        assert_eq!(tags.len(), count);
        for (lang, own) in [
            (Lang::Eng, "en"),
            (Lang::Fra, "fr"),
            (Lang::Sin, "si"),
            (Lang::Nep, "ne"),
            (Lang::Tha, "th"),
            (Lang::Zul, "zu"),
        ] {
            assert_eq!(tag(lang), own);
        }
    }
}
