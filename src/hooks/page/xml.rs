//! Reads XML documents of unknown quality: sitemaps and feeds. Entities that a document defines are
//! never expanded.

use quick_xml::Reader;
use quick_xml::events::Event;

/// Depth above which elements are read, but not named.
const DEPTH_MAX: usize = 64;
/// Attributes of an element that are read.
const ATTRIBUTES_MAX: usize = 32;
/// Longest text of one element in bytes; more is left out.
pub const TEXT_MAX_BYTES: usize = 8192;

/// A name: its prefix, often empty, and its local part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Name {
    /// What precedes the colon.
    pub prefix: String,
    /// What follows it.
    pub local: String,
}

#[derive(Debug)]
pub enum Piece {
    /// An element begins. Attributes have their full name.
    Start(Name, Vec<(String, String)>),
    Text(String),
    End,
}

/// Calls `visit` with each piece and the names of the elements around it, the root first; that of a
/// Start or End itself is the last. `visit` returns whether to continue. Returns why the document
/// is broken, if so; what comes before counts.
pub fn walk(text: &str, mut visit: impl FnMut(Piece, &[Name]) -> bool) -> Option<String> {
    let mut reader = Reader::from_str(text);
    let config = reader.config_mut();
    config.check_end_names = false;
    config.allow_unmatched_ends = true;
    config.expand_empty_elements = true;
    let mut path: Vec<Name> = Vec::new();
    let mut hidden = 0_usize;
    loop {
        let goes_on = match reader.read_event() {
            Ok(Event::Start(_)) if path.len() >= DEPTH_MAX => {
                hidden += 1;
                true
            }
            Ok(Event::Start(tag)) => {
                let mut attributes = Vec::new();
                let mut own = tag.attributes();
                // The check for duplicates takes quadratic time.
                let own = own.with_checks(false);
                for attribute in own.take(ATTRIBUTES_MAX).flatten() {
                    let value = unescaped(&attribute.value);
                    attributes.push((attribute.key.as_ref().to_owned(), value));
                }
                let name = name(tag.name().as_ref());
                path.push(name.clone());
                visit(Piece::Start(name, attributes), &path)
            }
            Ok(Event::Text(piece)) => visit(Piece::Text(piece.to_string()), &path),
            Ok(Event::CData(piece)) => visit(Piece::Text(piece.to_string()), &path),
            Ok(Event::GeneralRef(reference)) => {
                let own = reference.resolve_char_ref().ok().flatten();
                let text = match own {
                    Some(c) => c.to_string(),
                    None => quick_xml::escape::resolve_predefined_entity(&reference)
                        .unwrap_or_default()
                        .to_owned(),
                };
                visit(Piece::Text(text), &path)
            }
            Ok(Event::End(_)) if hidden > 0 => {
                hidden -= 1;
                true
            }
            Ok(Event::End(tag)) => {
                let ended = name(tag.name().as_ref());
                match path.iter().rposition(|own| *own == ended) {
                    Some(at) => close(&mut path, at, &mut visit),
                    None => true,
                }
            }
            Ok(Event::Eof) => return None,
            Ok(_) => true,
            Err(error) => {
                let at = reader.error_position();
                close(&mut path, 0, &mut visit);
                return Some(format!("it is broken at byte {at}: {error}"));
            }
        };
        if !goes_on {
            return None;
        }
    }
}

/// Ends all elements from this one.
fn close(path: &mut Vec<Name>, at: usize, visit: &mut impl FnMut(Piece, &[Name]) -> bool) -> bool {
    let mut goes_on = true;
    while path.len() > at && goes_on {
        goes_on = visit(Piece::End, path);
        path.pop();
    }
    goes_on
}

fn name(full: &str) -> Name {
    let (prefix, local) = full.split_once(':').unwrap_or(("", full));
    Name { prefix: prefix.to_owned(), local: local.to_owned() }
}

fn unescaped(value: &str) -> String {
    let value = &value[..value.floor_char_boundary(TEXT_MAX_BYTES)];
    quick_xml::escape::unescape(value).map_or_else(|_| value.to_owned(), |text| text.into_owned())
}
