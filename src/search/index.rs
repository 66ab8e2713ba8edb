//! The directory of the index. It has one directory for each number of a rebuild, and the link `current`
//! to the one that is read; a new one is built next to the old one, and a rename of the link changes over.
//! A killed process leaves the last commit: the next one removes what it left besides.

use crate::page::{self, PageFiles};
use crate::schema::{Fields, schema, version};
use crate::stem::Stems;
use crate::words::{Word, fold, initials, words};
use archivist_core::model::SnapshotId;
use archivist_core::model::search::{SearchChange, SearchEntry, SearchState, SearchWork};
use archivist_core::model::web::surt::page_key;
use archivist_plugin::files::remove::remove_tree;
use std::collections::BTreeSet;
use std::fmt::Display;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tantivy::directory::error::{DeleteError, LockError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, DirectoryLock, FileHandle, Lock, MmapDirectory, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::indexer::{IndexWriterOptions, LogMergePolicy};
use tantivy::tokenizer::{Token, TokenStream, Tokenizer};
use tantivy::{Index, IndexReader, IndexWriter, ReloadPolicy, TantivyDocument, TantivyError, Term};

const CURRENT: &str = "current";
const VERSION: &str = "version";
/// Marker of a snapshot whose files are only in the store.
const IN_STORE: &str = ".stored.json";
const WORDS_MAX: usize = 500_000;
/// Most characters of a title that count.
const TITLE_MAX: usize = 2000;
/// Memory of the writer before it begins a segment.
const WRITER_BYTES: usize = 48 << 20;
/// Segments that are merged at a time.
const MERGED: usize = 16;
/// Documents below which segments count as equally large: a page more must not rewrite thousands.
const SMALL_SEGMENT: u32 = 64;
/// Share of deleted documents from which a segment is rewritten.
const DELETED_MAX: f32 = 0.2;

#[derive(Debug)]
pub enum Problem {
    /// It is missing, damaged or of another version, and must be built.
    Rebuild(String),
    Failed(String),
}

impl Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let (Problem::Rebuild(text) | Problem::Failed(text)) = self;
        f.write_str(text)
    }
}

impl Problem {
    fn at(verb: &'static str, path: &Path) -> impl Fn(io::Error) -> Problem {
        let path = path.display().to_string();
        move |error| Problem::Failed(format!("failed to {verb} '{path}': {error}"))
    }

    /// Tantivy read what it did not write, or could not read or write at all.
    pub(crate) fn of(verb: &str, error: TantivyError) -> Problem {
        let is_damaged = match &error {
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. })
            | TantivyError::IoError(io_error) => matches!(
                io_error.kind(),
                ErrorKind::UnexpectedEof | ErrorKind::InvalidData | ErrorKind::NotFound
            ),
            TantivyError::OpenReadError(_)
            | TantivyError::DataCorruption(_)
            | TantivyError::IncompatibleIndex(_)
            | TantivyError::SchemaError(_)
            | TantivyError::FieldNotFound(_)
            | TantivyError::DeserializeError(_) => true,
            _ => false,
        };
        let reason = match error {
            TantivyError::OpenReadError(OpenReadError::IoError { io_error, .. })
            | TantivyError::IoError(io_error) => io_error.to_string(),
            other => other.to_string(),
        };
        let text = format!("failed to {verb} the search index: {reason}");
        if is_damaged { Problem::Rebuild(text) } else { Problem::Failed(text) }
    }
}

/// The files of an index, which readers only read: a process that may not write them can search.
/// Without locks, a reader can miss a file that a merge has just removed, and reads again.
#[derive(Clone, Debug)]
struct Files(MmapDirectory, bool);

impl Directory for Files {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        self.0.get_file_handle(path)
    }
    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.0.delete(path)
    }
    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.0.exists(path)
    }
    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.0.open_write(path)
    }
    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.0.atomic_read(path)
    }
    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.0.atomic_write(path, data)
    }
    fn sync_directory(&self) -> io::Result<()> {
        self.0.sync_directory()
    }
    fn acquire_lock(&self, lock: &Lock) -> Result<DirectoryLock, LockError> {
        if self.1 { self.0.acquire_lock(lock) } else { Ok(DirectoryLock::from(Box::new(()))) }
    }
    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.0.watch(callback)
    }
}

/// The words of a field, and the stems of a text whose first line is its language.
#[derive(Clone)]
struct Words {
    of_stems: bool,
}

struct WordStream {
    words: std::vec::IntoIter<Word>,
    stems: Option<Stems>,
    token: Token,
}

impl Tokenizer for Words {
    type TokenStream<'a> = WordStream;

    fn token_stream<'a>(&'a mut self, text: &'a str) -> WordStream {
        let (stems, text) = match text.split_once('\n').filter(|_| self.of_stems) {
            Some((language, text)) => (Stems::of(language), text),
            None => (None, text),
        };
        WordStream { words: words(text, WORDS_MAX).into_iter(), stems, token: Token::default() }
    }
}

impl TokenStream for WordStream {
    fn advance(&mut self) -> bool {
        for word in self.words.by_ref() {
            let text = match &self.stems {
                Some(stems) => match stems.term(&word) {
                    Some(term) => term,
                    None => continue,
                },
                None => word.text,
            };
            self.token.text = text;
            self.token.position = word.position;
            self.token.offset_from = word.range.start;
            self.token.offset_to = word.range.end;
            return true;
        }
        false
    }
    fn token(&self) -> &Token {
        &self.token
    }
    fn token_mut(&mut self) -> &mut Token {
        &mut self.token
    }
}

pub(crate) const WORDS: &str = "words";
pub(crate) const STEMS: &str = "stems";

pub(crate) struct Opened {
    pub index: Index,
    pub fields: Fields,
}

impl Opened {
    fn open(directory: &Path, is_written: bool) -> Result<Opened, Problem> {
        let found = fs::read_to_string(directory.join(VERSION)).map_err(|error| match error {
            error if error.kind() == ErrorKind::NotFound => {
                Problem::Rebuild("there is no search index".to_owned())
            }
            error => Problem::at("read", &directory.join(VERSION))(error),
        })?;
        if found != version() {
            return Err(Problem::Rebuild(
                "the search index has the format of another version".to_owned(),
            ));
        }
        let files = MmapDirectory::open(directory).map_err(|error| {
            Problem::Rebuild(format!("failed to open the search index: {error}"))
        })?;
        let index = Index::open(Files(files, is_written)).map_err(|e| Problem::of("open", e))?;
        let (schema, fields) = schema();
        if index.schema() != schema {
            let text = "the search index has other fields";
            return Err(Problem::Rebuild(text.to_owned()));
        }
        Ok(Opened::with_words(index, fields))
    }

    fn create(directory: &Path) -> Result<Opened, Problem> {
        let (schema, fields) = schema();
        let files = MmapDirectory::open(directory).map_err(|error| {
            Problem::Failed(format!("failed to open the search index: {error}"))
        })?;
        let index = Index::create(Files(files, true), schema, tantivy::IndexSettings::default());
        let index = index.map_err(|error| Problem::of("create", error))?;
        let file = directory.join(VERSION);
        fs::write(&file, version()).map_err(Problem::at("write", &file))?;
        Ok(Opened::with_words(index, fields))
    }

    fn with_words(index: Index, fields: Fields) -> Opened {
        let tokenizers = index.tokenizers();
        tokenizers.register(WORDS, Words { of_stems: false });
        tokenizers.register(STEMS, Words { of_stems: true });
        Opened { index, fields }
    }

    pub(crate) fn reader(&self) -> Result<IndexReader, Problem> {
        let reader = self.index.reader_builder();
        let reader = reader.reload_policy(ReloadPolicy::Manual);
        reader.try_into().map_err(|error| Problem::of("read", error))
    }

    fn writer(&self) -> Result<IndexWriter, Problem> {
        let options = IndexWriterOptions::builder()
            .memory_budget_per_thread(WRITER_BYTES)
            .num_worker_threads(1)
            .num_merge_threads(1)
            .build();
        let writer = self.index.writer_with_options(options);
        let writer: IndexWriter = writer.map_err(|error| Problem::of("write", error))?;
        let mut merges = LogMergePolicy::default();
        merges.set_min_num_segments(MERGED);
        merges.set_min_layer_size(SMALL_SEGMENT);
        merges.set_del_docs_ratio_before_merge(DELETED_MAX);
        writer.set_merge_policy(Box::new(merges));
        Ok(writer)
    }

    /// Adds the changes, and commits them all or none.
    fn apply(&self, changes: &[SearchChange]) -> Result<(), Problem> {
        let mut writer = self.writer()?;
        self.add(&mut writer, changes)?;
        writer.commit().map_err(|e| Problem::of("write", e))?;
        writer.wait_merging_threads().map_err(|e| Problem::of("merge", e))
    }

    fn add(&self, writer: &mut IndexWriter, changes: &[SearchChange]) -> Result<(), Problem> {
        let by_id = |id: SnapshotId| Term::from_field_u64(self.fields.id, number(id));
        for change in changes {
            match change {
                SearchChange::Delete(id) => {
                    writer.delete_term(by_id(*id));
                }
                SearchChange::Put(entry) => {
                    let files = page::read(entry);
                    if files.text.is_none() && entry.directory.join(IN_STORE).exists() {
                        // The text is in the store; what the index has of it stays.
                        if self.has(entry.id)? {
                            continue;
                        }
                    }
                    writer.delete_term(by_id(entry.id));
                    let document = document(&self.fields, entry, &files)?;
                    writer.add_document(document).map_err(|error| Problem::of("write", error))?;
                }
            }
        }
        Ok(())
    }

    fn has(&self, id: SnapshotId) -> Result<bool, Problem> {
        let searcher = self.reader()?.searcher();
        let term = Term::from_field_u64(self.fields.id, number(id));
        let found = searcher.doc_freq(&term);
        Ok(found.map_err(|error| Problem::of("read", error))? > 0)
    }
}

pub fn number(id: SnapshotId) -> u64 {
    id.0.unsigned_abs()
}

/// Hash of the key of a page (FNV-1a), which must be the same in every version.
pub(crate) fn page_number(key: &str) -> u64 {
    key.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The labels of a host as in keys, `com,example`, with those of the domains above it.
pub(crate) fn domains(key: &str) -> Vec<&str> {
    let host = key.split([')', ':']).next().unwrap_or_default();
    let ends = host.match_indices(',').map(|(at, _)| at);
    ends.chain([host.len()]).map(|end| &host[..end]).collect()
}

/// The longest terms of tantivy are 65,530 bytes.
fn term_of(text: &str) -> &str {
    &text[..text.floor_char_boundary(60_000)]
}

fn document(
    fields: &Fields,
    entry: &SearchEntry,
    files: &PageFiles,
) -> Result<TantivyDocument, Problem> {
    let title = files.title.as_deref().or(entry.title.as_deref());
    let title: Option<String> = title.map(|title| title.chars().take(TITLE_MAX).collect());
    let key = page_key(&entry.url);
    let mut document = TantivyDocument::default();
    document.add_u64(fields.id, number(entry.id));
    document.add_u64(fields.page, page_number(&key));
    document.add_i64(fields.time, entry.time.0);
    document.add_text(fields.key, term_of(&key));
    document.add_text(fields.status, entry.status.as_str());
    if entry.is_failure {
        document.add_text(fields.status, SearchState::Unsaved.as_str());
    }
    for domain in domains(&key) {
        document.add_text(fields.site, term_of(domain));
    }
    for tag in &entry.tags {
        document.add_text(fields.tag, term_of(&fold(tag)));
    }
    for plugin in &files.plugins {
        document.add_text(fields.plugin, plugin);
    }
    let url: Vec<u8> = percent_encoding::percent_decode_str(&entry.url).collect();
    document.add_text(fields.url, String::from_utf8_lossy(&url));
    let language = files.language.as_deref().and_then(Stems::of);
    let language = language.as_ref().map(Stems::language);
    if let Some(language) = language {
        document.add_text(fields.language, language);
    }
    if let Some(title) = &title {
        document.add_text(fields.title, title);
        document.add_u64(fields.title_words, words(title, TITLE_MAX).len() as u64);
        if let Some(language) = language {
            document.add_text(fields.title_stems, format!("{language}\n{title}"));
        }
    }
    if let Some(text) = &files.text {
        document.add_text(fields.text, text);
        for initial in initials(text) {
            document.add_text(fields.initial, initial.to_string());
        }
        if let Some(language) = language {
            document.add_text(fields.stems, format!("{language}\n{text}"));
        }
    }
    let kept = SearchEntry { title, ..entry.clone() };
    let kept = serde_json::to_string(&kept)
        .map_err(|error| Problem::Failed(format!("failed to write '{}': {error}", entry.id)))?;
    document.add_text(fields.entry, kept);
    Ok(document)
}

pub(crate) fn open(directory: &Path) -> Result<Opened, Problem> {
    Opened::open(&current(directory)?, false)
}

fn current(directory: &Path) -> Result<PathBuf, Problem> {
    let link = directory.join(CURRENT);
    match fs::read_link(&link) {
        Ok(name) => Ok(directory.join(name.file_name().unwrap_or_default())),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::InvalidInput) => {
            Err(Problem::Rebuild("there is no search index".to_owned()))
        }
        Err(error) => Err(Problem::at("read", &link)(error)),
    }
}

/// Adds changes to the index, all or none of them. They may be in it already.
///
/// # Errors
/// If the index must be built first, or cannot be written.
pub fn change(directory: &Path, changes: &[SearchChange]) -> Result<(), Problem> {
    Opened::open(&current(directory)?, true)?.apply(changes)
}

/// Carries out the work of one unit. It may have been done before, wholly or in part.
///
/// # Errors
/// If the index must be built first, or cannot be written.
pub fn perform(work: &SearchWork) -> Result<(), Problem> {
    let Some(build) = work.build else {
        return change(&work.index, &work.changes);
    };
    let builder = if build.is_first {
        Builder::begin(&work.index, build.number)?
    } else {
        Builder::resume(&work.index, build.number)
    };
    // A build that is complete was replaced already, when the unit was killed after that.
    builder.add(&work.changes)?;
    if build.is_last { builder.finish() } else { Ok(()) }
}

/// Reads all files of the index that is read, and compares their checksums. Returns the snapshots that the
/// index has.
///
/// # Errors
/// If a file is damaged.
pub fn check(directory: &Path) -> Result<BTreeSet<u64>, Problem> {
    let opened = open(directory)?;
    let damaged = opened.index.validate_checksum();
    let damaged = damaged.map_err(|error| Problem::of("read", error))?;
    if let Some(file) = damaged.into_iter().next() {
        return Err(Problem::Rebuild(format!(
            "the file '{}' of the search index is damaged",
            file.display()
        )));
    }
    let mut ids = BTreeSet::new();
    for segment in opened.reader()?.searcher().segment_readers() {
        let numbers = segment.fast_fields().u64("id");
        let numbers = numbers.map_err(|error| Problem::of("read", error))?;
        ids.extend(segment.doc_ids_alive().filter_map(|doc| numbers.first(doc)));
    }
    Ok(ids)
}

pub struct Builder {
    directory: PathBuf,
    name: String,
}

impl Builder {
    /// Begins the build with this number, without what an earlier one of that number left.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn begin(directory: &Path, number: u64) -> Result<Builder, Problem> {
        let builder = Builder::resume(directory, number);
        let path = builder.path();
        if current(directory).is_ok_and(|current| current == path) {
            fs::remove_file(directory.join(CURRENT)).map_err(Problem::at("remove", &path))?;
        }
        remove_tree(&path).map_err(Problem::at("remove", &path))?;
        fs::create_dir_all(&path).map_err(Problem::at("create", &path))?;
        Opened::create(&path)?;
        Ok(builder)
    }

    /// Continues the build with this number.
    pub fn resume(directory: &Path, number: u64) -> Builder {
        Builder { directory: directory.to_owned(), name: number.to_string() }
    }

    fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }

    /// Adds changes, all or none of them.
    ///
    /// # Errors
    /// If the build must begin again, or cannot be written.
    pub fn add(&self, changes: &[SearchChange]) -> Result<(), Problem> {
        Opened::open(&self.path(), true)?.apply(changes)
    }

    /// Makes this the index that is read, and removes all others.
    ///
    /// # Errors
    /// If the directory cannot be written.
    pub fn finish(self) -> Result<(), Problem> {
        let (new, link) = (self.directory.join(".current.new"), self.directory.join(CURRENT));
        let _ = fs::remove_file(&new);
        symlink(&self.name, &new).map_err(Problem::at("create", &new))?;
        fs::rename(&new, &link).map_err(Problem::at("rename", &new))?;
        let opened = File::open(&self.directory).and_then(|directory| directory.sync_all());
        opened.map_err(Problem::at("write", &self.directory))?;
        let entries = fs::read_dir(&self.directory);
        for entry in entries.map_err(Problem::at("read", &self.directory))?.flatten() {
            let name = entry.file_name();
            let is_build = name.to_str().is_some_and(|name| name.parse::<u64>().is_ok());
            if is_build && name.to_str() != Some(self.name.as_str()) {
                let path = entry.path();
                remove_tree(&path).map_err(Problem::at("remove", &path))?;
            }
        }
        Ok(())
    }
}
