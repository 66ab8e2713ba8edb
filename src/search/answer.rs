//! Answers questions: builds the query for the engine, ranks pages, and reads what is shown of them.

use crate::group::{Group, Grouped};
use crate::index::{self, Opened, Problem, domains, page_number};
use crate::page;
use crate::query::{Condition, Parsed, Part, Place, parse};
use crate::schema::Fields;
use crate::snippet::Marker;
use crate::stem::Stems;
use crate::suggest::nearest;
use crate::words::{WordKind, fold};
use archivist_core::model::search::{
    SearchAnswer, SearchEntry, SearchHit, SearchQuestion, SearchState, WITHOUT_MAX,
};
use archivist_core::model::web::surt::page_key;
use std::collections::BTreeSet;
use std::ops::Bound;
use std::path::Path;
use tantivy::collector::{Count, DocSetCollector};
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, InvertedIndexRangeQuery, Occur,
    PhrasePrefixQuery, PhraseQuery, Query, RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::{Field, IndexRecordOption, TantivyDocument, Value};
use tantivy::{DocAddress, Searcher, Term};

/// Pages that are ranked a second time, by how much of their title the question is.
const RANKED: usize = 200;
/// Times that an index is read again which has changed while it was read.
const ATTEMPTS: u32 = 3;
/// Words that one prefix within a phrase stands for, at most: a character has thousands of pairs.
const EXPANSIONS_MAX: u32 = 20_000;

/// What a page gets besides the score of its words, which is far below. A pasted URL comes first, then
/// titles that have all words, then titles that have forms of all, then texts that have all as written.
const URL: f32 = 16_000.0;
const TITLE: f32 = 4_000.0;
const TITLE_FORMS: f32 = 2_000.0;
const AS_WRITTEN: f32 = 1_000.0;
/// What a title gets that has no other words.
const WHOLE_TITLE: f32 = 100.0;

/// How much a word counts by its field, and other forms of it.
const IN_TEXT: f32 = 1.0;
const IN_TITLE: f32 = 2.0;
const IN_URL: f32 = 0.5;
const FORM: f32 = 0.4;

type Clause = (Occur, Box<dyn Query>);

/// Answers a question with the index in a directory.
///
/// # Errors
/// If there is no index that can be read.
pub fn answer(directory: &Path, question: &SearchQuestion) -> Result<SearchAnswer, Problem> {
    let mut attempt = 1;
    loop {
        match index::open(directory).and_then(|opened| answer_with(&opened, question)) {
            // A merge removed a file between two reads.
            Err(Problem::Rebuild(_)) if attempt < ATTEMPTS => attempt += 1,
            done => return done,
        }
    }
}

fn answer_with(opened: &Opened, question: &SearchQuestion) -> Result<SearchAnswer, Problem> {
    let searcher = opened.reader()?.searcher();
    let asked = Asked {
        fields: opened.fields,
        stems: languages(&searcher, opened.fields)?,
        parsed: parse(&question.words),
        question,
    };
    if asked.is_empty() {
        return Ok(SearchAnswer::default());
    }
    let failed = |error| Problem::of("search", error);
    let by = if question.all { "id" } else { "page" };
    let without = searcher.search(&asked.without(), &DocSetCollector).map_err(failed)?;
    let groups = Grouped { by, time: "time", without: without.into() };
    let groups = searcher.search(&asked.query(), &groups).map_err(failed)?;
    let total = groups.total();
    let limit = question.limit as usize;
    let best = groups.best(limit.max(RANKED));
    let best = asked.rank(&searcher, best).map_err(failed)?;
    let marker = Marker::new(&asked.parsed, &asked.stems);
    let mut hits = Vec::new();
    for group in best.into_iter().take(limit) {
        hits.push(asked.hit(&searcher, &group, &marker)?);
    }
    let meant = if total == 0 {
        nearest(&searcher, &asked.fields, &asked.parsed, &question.words).map_err(failed)?
    } else {
        None
    };
    Ok(SearchAnswer { hits, total, meant, is_cut: asked.parsed.is_cut })
}

fn languages(searcher: &Searcher, fields: Fields) -> Result<Vec<Stems>, Problem> {
    let mut found = BTreeSet::new();
    for segment in searcher.segment_readers() {
        let index = segment.inverted_index(fields.language);
        let index = index.map_err(|error| Problem::of("search", error))?;
        let terms = index.terms().stream();
        let mut terms = terms.map_err(|error| Problem::of("search", error.into()))?;
        while terms.advance() {
            found.insert(String::from_utf8_lossy(terms.key()).into_owned());
        }
    }
    Ok(found.iter().filter_map(|language| Stems::of(language)).collect())
}

struct Asked<'a> {
    fields: Fields,
    stems: Vec<Stems>,
    parsed: Parsed,
    question: &'a SearchQuestion,
}

fn term(field: Field, text: &str) -> Box<dyn Query> {
    let term = Term::from_field_text(field, text);
    Box::new(TermQuery::new(term, IndexRecordOption::Basic))
}

fn scored(field: Field, text: &str) -> Box<dyn Query> {
    let term = Term::from_field_text(field, text);
    Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs))
}

/// Terms of a field from one to before another.
fn range(field: Field, from: &str, to: &str) -> Box<dyn Query> {
    let bound = |text| Term::from_field_text(field, text);
    let (from, to) = (Bound::Included(bound(from)), Bound::Excluded(bound(to)));
    Box::new(InvertedIndexRangeQuery::new(from, to))
}

fn boosted(query: Box<dyn Query>, boost: f32) -> Box<dyn Query> {
    Box::new(BoostQuery::new(query, boost))
}

/// A query whose hits all have the same score.
fn constant(query: Box<dyn Query>, score: f32) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(query, score))
}

fn one_of(queries: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    let clauses: Vec<Clause> = queries.into_iter().map(|q| (Occur::Should, q)).collect();
    Box::new(BooleanQuery::new(clauses))
}

fn all_of(queries: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    let clauses: Vec<Clause> = queries.into_iter().map(|q| (Occur::Must, q)).collect();
    Box::new(BooleanQuery::new(clauses))
}

/// The words of a part as they are written, in one field.
fn as_written(part: &Part, field: Field) -> Box<dyn Query> {
    if let [word] = part.words.as_slice() {
        return if part.is_prefix {
            range(field, &word.text, &format!("{}\u{10ffff}", word.text))
        } else {
            scored(field, &word.text)
        };
    }
    let first = part.words.first().map_or(0, |word| word.position);
    let terms = part.words.iter().map(|word| {
        let term = Term::from_field_text(field, &word.text);
        (word.position - first, term)
    });
    if part.is_prefix {
        let mut phrase = PhrasePrefixQuery::new_with_offset(terms.collect());
        phrase.set_max_expansions(EXPANSIONS_MAX);
        Box::new(phrase)
    } else {
        Box::new(PhraseQuery::new_with_offset(terms.collect()))
    }
}

impl Asked<'_> {
    /// Other forms of a word in a field of stems. `None` if a part is more than one word.
    fn forms(&self, part: &Part, field: Field) -> Option<Box<dyn Query>> {
        let [word] = part.words.as_slice() else {
            return None;
        };
        let has_forms = part.has_forms && !part.is_prefix && word.kind == WordKind::Whole;
        let terms: Vec<Box<dyn Query>> = self
            .stems
            .iter()
            .filter(|_| has_forms)
            .filter_map(|stems| Some(scored(field, &stems.term(word)?)))
            .collect();
        (!terms.is_empty()).then(|| one_of(terms))
    }

    /// A part as it is written, in any field that it is looked for in.
    fn anywhere(&self, part: &Part) -> Vec<Box<dyn Query>> {
        let title = boosted(as_written(part, self.fields.title), IN_TITLE);
        let url = boosted(as_written(part, self.fields.url), IN_URL);
        match part.place {
            Place::Title => return vec![title],
            Place::Url => return vec![url],
            Place::Anywhere => {}
        }
        let text = match part.initial() {
            Some(letter) => constant(term(self.fields.initial, letter), 1.0),
            None => as_written(part, self.fields.text),
        };
        vec![boosted(text, IN_TEXT), title, url]
    }

    /// A part or other forms of it.
    fn with_forms(&self, part: &Part) -> Box<dyn Query> {
        let mut queries = self.anywhere(part);
        let fields = match part.place {
            Place::Anywhere => {
                &[(self.fields.title_stems, IN_TITLE), (self.fields.stems, IN_TEXT)][..]
            }
            Place::Title => &[(self.fields.title_stems, IN_TITLE)],
            Place::Url => &[],
        };
        for (field, boost) in fields {
            let forms = self.forms(part, *field);
            queries.extend(forms.map(|forms| boosted(forms, FORM * boost)));
        }
        one_of(queries)
    }

    /// A part in the title, or where else it is looked for.
    fn titled(&self, part: &Part) -> Box<dyn Query> {
        match part.place {
            Place::Url => as_written(part, self.fields.url),
            Place::Anywhere | Place::Title => as_written(part, self.fields.title),
        }
    }

    /// A part or other forms of it in the title.
    fn titled_with_forms(&self, part: &Part) -> Box<dyn Query> {
        let mut queries = vec![self.titled(part)];
        if part.place != Place::Url {
            queries.extend(self.forms(part, self.fields.title_stems));
        }
        one_of(queries)
    }

    /// Whether pages with other forms of the words are found, too.
    fn has_forms(&self) -> bool {
        self.parsed.parts().any(|part| self.forms(part, self.fields.stems).is_some())
    }

    /// What meets a condition; `words` is what has the words of one.
    fn meets(
        &self,
        condition: &Condition,
        words: &dyn Fn(&Part) -> Box<dyn Query>,
    ) -> Box<dyn Query> {
        let filter = match condition {
            Condition::Words(part) => return words(part),
            Condition::Tag(tag) => term(self.fields.tag, tag),
            Condition::Site(host) => self.of_site(host),
            Condition::State(state) => term(self.fields.status, state.as_str()),
        };
        constant(filter, 0.0)
    }

    /// What meets all lists of conditions that have words.
    fn all(&self, words: &dyn Fn(&Part) -> Box<dyn Query>) -> Vec<Box<dyn Query>> {
        let lists = self.parsed.wanted.iter();
        let lists = lists.filter(|list| list.iter().any(|condition| condition.part().is_some()));
        let one = |list: &Vec<Condition>| {
            one_of(list.iter().map(|condition| self.meets(condition, words)).collect())
        };
        lists.map(one).collect()
    }

    /// Pages of a host and its subdomains.
    fn of_site(&self, host: &str) -> Box<dyn Query> {
        let key = page_key(&format!("http://{host}/"));
        let host = domains(&key).pop().unwrap_or_default();
        term(self.fields.site, host)
    }

    /// Whether there is nothing to look for: signs alone.
    fn is_empty(&self) -> bool {
        let has_words = !self.question.words.trim().is_empty();
        self.parsed.is_empty() && self.filters().is_empty() && has_words
    }

    fn query(&self) -> Box<dyn Query> {
        let mut clauses: Vec<Clause> = Vec::new();
        let words = self.words();
        clauses.push((
            Occur::Must,
            match &self.parsed.url {
                Some(url) => {
                    let page = term(self.fields.key, &page_key(url));
                    one_of(vec![constant(page, URL), words])
                }
                None => words,
            },
        ));
        let filters = self.filters().into_iter();
        clauses.extend(filters.map(|filter| (Occur::Must, constant(filter, 0.0))));
        Box::new(BooleanQuery::new(clauses))
    }

    /// What is left out. It is a query of its own, because the exclusion of tantivy 0.27 seeks backwards in
    /// phrases that have no further document.
    fn without(&self) -> Box<dyn Query> {
        let without = self.parsed.without.iter();
        let met = |condition| self.meets(condition, &|part| self.with_forms(part));
        let mut queries: Vec<Box<dyn Query>> = without.map(met).collect();
        let is_state = |condition: &Condition| matches!(condition, Condition::State(_));
        let has_state = self.parsed.wanted.iter().flatten().any(is_state);
        if self.question.status.is_none() && !has_state {
            queries.push(term(self.fields.status, SearchState::Unsaved.as_str()));
        }
        queries.push(self.deleted());
        one_of(queries)
    }

    /// The snapshots that the question leaves out.
    fn deleted(&self) -> Box<dyn Query> {
        let ids = self.question.without.iter().take(WITHOUT_MAX);
        let ids = ids.map(|id| Term::from_field_u64(self.fields.id, index::number(*id)));
        Box::new(TermSetQuery::new(ids))
    }

    fn words(&self) -> Box<dyn Query> {
        let found = self.all(&|part| self.with_forms(part));
        if found.is_empty() {
            return Box::new(AllQuery);
        }
        let mut clauses: Vec<Clause> = Vec::new();
        clauses.extend(found.into_iter().map(|query| (Occur::Must, query)));
        let title = all_of(self.all(&|part| self.titled(part)));
        if self.has_forms() {
            clauses.push((Occur::Should, constant(title, TITLE)));
            let forms = all_of(self.all(&|part| self.titled_with_forms(part)));
            clauses.push((Occur::Should, constant(forms, TITLE_FORMS)));
            let written = all_of(self.all(&|part| one_of(self.anywhere(part))));
            clauses.push((Occur::Should, constant(written, AS_WRITTEN)));
        } else {
            // All pages have the words as written: the other conditions would read the same terms again.
            clauses.push((Occur::Should, constant(title, TITLE + TITLE_FORMS)));
        }
        Box::new(BooleanQuery::new(clauses))
    }

    fn filters(&self) -> Vec<Box<dyn Query>> {
        let (fields, question) = (&self.fields, self.question);
        let mut filters: Vec<Box<dyn Query>> = Vec::new();
        let tags = question.tags.iter().map(|tag| fold(tag));
        filters.extend(tags.map(|tag| term(fields.tag, &tag)));
        let lists = self.parsed.wanted.iter();
        let lists = lists.filter(|list| list.iter().all(|condition| condition.part().is_none()));
        filters.extend(lists.map(|list| {
            let conditions = list.iter();
            one_of(conditions.map(|it| self.meets(it, &|part| self.with_forms(part))).collect())
        }));
        let plugins = question.plugins.iter();
        filters.extend(plugins.map(|plugin| term(fields.plugin, plugin)));
        if let Some(status) = question.status {
            filters.push(term(fields.status, status.as_str()));
        }
        if let Some(site) = &question.site {
            filters.push(self.of_site(site));
        }
        if let Some(pattern) = &question.url {
            let ranges = pattern.ranges().iter();
            let ranges = ranges.map(|(from, to)| range(fields.key, from, to));
            filters.push(one_of(ranges.collect()));
        }
        if question.since.is_some() || question.until.is_some() {
            let time =
                |time: archivist_core::model::Time| Term::from_field_i64(fields.time, time.0);
            let from = question.since.map_or(Bound::Unbounded, |t| Bound::Included(time(t)));
            let to = question.until.map_or(Bound::Unbounded, |t| Bound::Excluded(time(t)));
            filters.push(Box::new(RangeQuery::new(from, to)));
        }
        filters
    }

    /// Orders pages: of titles that have all words, those that are little more come first.
    fn rank(&self, searcher: &Searcher, mut best: Vec<Group>) -> tantivy::Result<Vec<Group>> {
        let words: usize = self.parsed.parts().map(|part| part.words.len()).sum();
        for group in &mut best {
            if group.score >= TITLE_FORMS && words > 0 {
                let segment = searcher.segment_reader(group.address.segment_ord);
                let column = segment.fast_fields().u64("title_words")?;
                let of_title = column.first(group.address.doc_id).unwrap_or(u64::MAX);
                group.score += WHOLE_TITLE * (words as f32 / of_title as f32).min(1.0);
            }
        }
        best.sort_by(|a, b| b.score.total_cmp(&a.score).then(b.time.cmp(&a.time)));
        Ok(best)
    }

    fn hit(
        &self,
        searcher: &Searcher,
        group: &Group,
        marker: &Marker<'_>,
    ) -> Result<SearchHit, Problem> {
        let entry = self.entry(searcher, group.address)?;
        let page = page_number(&page_key(&entry.url));
        let versions = Term::from_field_u64(self.fields.page, page);
        let versions = TermQuery::new(versions, IndexRecordOption::Basic);
        let versions = BooleanQuery::new(vec![
            (Occur::Must, Box::new(versions)),
            (Occur::MustNot, self.deleted()),
        ]);
        let versions = searcher.search(&versions, &Count);
        let saved = page::text(&entry);
        let text = saved.text.as_deref().unwrap_or_default();
        Ok(SearchHit {
            id: entry.id,
            versions: versions.map_err(|error| Problem::of("search", error))? as u64,
            snippet: marker.snippet(text, saved.language.as_deref()),
            title: entry.title,
            url: entry.url,
            time: entry.time,
            tags: entry.tags,
        })
    }

    fn entry(&self, searcher: &Searcher, at: DocAddress) -> Result<SearchEntry, Problem> {
        let document: TantivyDocument =
            searcher.doc(at).map_err(|error| Problem::of("search", error))?;
        let text = document.get_first(self.fields.entry);
        let text = text.and_then(|value| value.as_str()).unwrap_or_default();
        serde_json::from_str(text).map_err(|error| {
            Problem::Rebuild(format!("failed to read an entry of the search index: {error}"))
        })
    }
}
