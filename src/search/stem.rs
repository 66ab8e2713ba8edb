//! Stems of words, by the language of the page. A stem is a term of its own in each language, so that
//! those of one language are not found by words of another.

use crate::words::{Word, WordKind, fold};
use frostem::{Algorithm, Stemmer};

pub struct Stems {
    language: String,
    stemmer: Stemmer,
}

impl Stems {
    /// Takes the tag of a language (ISO 639-1). `None` if there is no stemmer for it.
    pub fn of(language: &str) -> Option<Stems> {
        let name = match language {
            "nb" | "nn" => "no",
            other => other,
        };
        let is_code = matches!(name.len(), 2 | 3) && name.bytes().all(|c| c.is_ascii_lowercase());
        let algorithm = is_code.then(|| Algorithm::from_name(name).ok())??;
        Some(Stems { language: name.to_owned(), stemmer: Stemmer::new(algorithm) })
    }

    /// The tag of the language, as in its terms.
    pub fn language(&self) -> &str {
        &self.language
    }

    /// Returns the term of the stem of a word. `None` for parts of runs and for numbers.
    pub fn term(&self, word: &Word) -> Option<String> {
        self.term_of(&word.lower).filter(|_| word.kind == WordKind::Whole)
    }

    /// Returns the term of the stem of a word in lower case, with its accents. `None` for numbers.
    pub fn term_of(&self, lower: &str) -> Option<String> {
        let stem = || fold(&self.stemmer.stem(lower));
        let has_stem = lower.chars().any(char::is_alphabetic);
        has_stem.then(|| format!("{}:{}", self.language, stem()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::words;

    fn term(language: &str, text: &str) -> Option<String> {
        Stems::of(language)?.term(&words(text, 10)[0])
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for (language, forms) in [
            ("en", &["archive", "Archives", "archiving", "archived"][..]),
            ("de", &["Häuser", "Häusern"]),
            ("fr", &["généralité", "généralités"]),
            ("nb", &["arkiv", "arkivet"]),
            ("ru", &["книга", "книги", "книгу"]),
        ] {
            let first = term(language, forms[0]);
            assert!(first.is_some(), "{language}");
            for form in forms {
                assert_eq!(term(language, form), first, "{form}");
            }
        }
    }

    #[test]
    fn other_languages_have_none() {
        for language in ["zh", "ja", "ko", "", "english", "porter", "../x", "EN"] {
            assert!(Stems::of(language).is_none(), "{language}");
        }
        assert_eq!(term("en", "2024"), None);
        assert_eq!(term("en", "日本"), None);
    }
}
