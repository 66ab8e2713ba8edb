//! Limits on stored text from pages, hooks and users. Sizes are bytes of UTF-8 unless another unit
//! is named.

/// Most tags of one page, one crawl or one report.
pub const TAGS_MAX: usize = 64;
/// Most tags of a page in total, from all of its hooks and its crawl.
pub const PAGE_TAGS_MAX: usize = 256;
pub const TAG_MAX: usize = 200;
/// Longest title, output or error.
pub const TEXT_MAX: usize = 4096;
/// Longest text of a bookmark's time; a longer one is dropped.
pub const TIME_MAX: usize = 64;

/// Returns `text` cut to [`TEXT_MAX`] bytes, with `…` (three bytes) in place of the rest.
pub fn cut(text: String) -> String {
    if text.len() <= TEXT_MAX {
        return text;
    }
    format!("{}…", &text[..text.floor_char_boundary(TEXT_MAX)])
}

/// Distinct tags in order, up to the limit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tags {
    names: Vec<String>,
    /// Number of tags left out: too many, or too long.
    pub dropped: u64,
}

impl Tags {
    /// Adds a tag unless it is a duplicate, longer than `TAG_MAX` bytes, or too many.
    pub fn push(&mut self, name: String) {
        if name.len() > TAG_MAX {
            self.dropped += 1;
        } else if !self.names.contains(&name) {
            // A linear search is enough for so few tags.
            if self.names.len() < TAGS_MAX { self.names.push(name) } else { self.dropped += 1 }
        }
    }

    /// Returns the tags in the order in which they were added.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Returns the tags in the order in which they were added.
    pub fn into_names(self) -> Vec<String> {
        self.names
    }
}

impl Extend<String> for Tags {
    fn extend<I: IntoIterator<Item = String>>(&mut self, names: I) {
        names.into_iter().for_each(|name| self.push(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn tags_that_do_not_fit_are_counted() {
        let mut tags = Tags::default();
        tags.extend(["a".to_owned(), "x".repeat(TAG_MAX + 1), "a".to_owned()]);
        tags.extend((0..TAGS_MAX).map(|n| n.to_string()));
        assert_eq!(tags.dropped, 2);
        let names = tags.into_names();
        assert_eq!((names.len(), names[0].as_str()), (TAGS_MAX, "a"));
    }

    proptest! {
        #[test]
        fn a_cut_text_is_its_own_begin(text in "\\PC{0,3}", times in 0usize..3000) {
            let text = text.repeat(times);
            let cut = cut(text.clone());
            prop_assert!(cut.len() <= TEXT_MAX + 3);
            prop_assert!(text.starts_with(cut.trim_end_matches('…')) || text.starts_with(&cut));
        }
    }
}
