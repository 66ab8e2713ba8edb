//! The fields of the index. A change of them, of words or of stems requires another [`FORMAT`].

use crate::index::{STEMS, WORDS};
use tantivy::schema::{
    Field, IndexRecordOption, NumericOptions, STORED, STRING, Schema, TextFieldIndexing,
    TextOptions,
};

const FORMAT: u32 = 3;

/// Returns the text of the version file of an index: our format and that of tantivy.
pub fn version() -> String {
    format!("archivist-search {FORMAT} tantivy {}\n", tantivy::INDEX_FORMAT_VERSION)
}

/// The fields of a document, which is a snapshot.
#[derive(Clone, Copy, Debug)]
pub struct Fields {
    pub id: Field,
    /// Words and pairs of the text, with their positions.
    pub text: Field,
    /// First letters of the words of the text. Without them, a question for one letter would read the pages of
    /// each of the thousands of words that begin with it.
    pub initial: Field,
    pub stems: Field,
    /// Words and pairs of the title, with their positions.
    pub title: Field,
    pub title_stems: Field,
    pub title_words: Field,
    pub url: Field,
    pub key: Field,
    /// First bits of the hash of the key.
    pub page: Field,
    /// Language of the text, if it has stems.
    pub language: Field,
    /// Folded tags.
    pub tag: Field,
    /// Host and the domains above it.
    pub site: Field,
    pub plugin: Field,
    /// States of the snapshot: each [`archivist_core::model::search::SearchState`] that fits.
    pub status: Field,
    /// When it was archived, in milliseconds.
    pub time: Field,
    /// The entry as JSON.
    pub entry: Field,
}

pub fn schema() -> (Schema, Fields) {
    let mut schema = Schema::builder();
    let with = |tokenizer, record| {
        let indexing =
            TextFieldIndexing::default().set_tokenizer(tokenizer).set_index_option(record);
        TextOptions::default().set_indexing_options(indexing)
    };
    let positions = with(WORDS, IndexRecordOption::WithFreqsAndPositions);
    let counts = with(STEMS, IndexRecordOption::WithFreqs);
    let number = NumericOptions::default().set_fast();
    let term = || STRING;
    let fields = Fields {
        id: schema.add_u64_field("id", number.clone().set_indexed()),
        text: schema.add_text_field("text", positions.clone()),
        initial: schema.add_text_field("initial", term()),
        stems: schema.add_text_field("stems", counts.clone()),
        title: schema.add_text_field("title", positions.clone()),
        title_stems: schema.add_text_field("title_stems", counts),
        title_words: schema.add_u64_field("title_words", number.clone()),
        url: schema.add_text_field("url", positions),
        key: schema.add_text_field("key", term()),
        page: schema.add_u64_field("page", number.clone().set_indexed()),
        language: schema.add_text_field("language", term()),
        tag: schema.add_text_field("tag", term()),
        site: schema.add_text_field("site", term()),
        plugin: schema.add_text_field("plugin", term()),
        status: schema.add_text_field("status", term()),
        time: schema.add_i64_field("time", number),
        entry: schema.add_text_field("entry", STORED),
    };
    (schema.build(), fields)
}
