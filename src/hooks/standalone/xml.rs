//! Writes drawings and other XML again: without scripts, and with addresses that lead to the files of the copy.

use super::document::{ADDRESSES, STYLES, Target, sheet, target};
use super::{Leads, Usage};
use crate::page::html::Resolver;
use quick_xml::events::{BytesStart, BytesText, Event};
use quick_xml::{Reader, Writer};

/// Elements that are left out with all that is in them.
const DROPPED: [&str; 4] = ["script", "handler", "listener", "iframe"];

/// The document, or `None` if it is not well-formed, or has markup in an entity, which could be a script.
pub(super) fn converted(text: &str, resolver: &Resolver, leads: &mut dyn Leads) -> Option<String> {
    let mut reader = Reader::from_str(text);
    let mut writer = Writer::new(Vec::new());
    // Open elements below one that is left out.
    let mut hidden = 0_usize;
    let mut is_style = false;
    loop {
        let event = reader.read_event().ok()?;
        let is_start = matches!(event, Event::Start(_));
        match event {
            Event::Eof => break,
            Event::Start(tag) | Event::Empty(tag) if hidden > 0 || is_dropped(&tag) => {
                drop(tag);
                hidden += usize::from(is_start);
            }
            Event::End(_) if hidden > 0 => hidden -= 1,
            _ if hidden > 0 => {}
            Event::Start(tag) | Event::Empty(tag) => {
                is_style = is_start && tag.local_name().as_ref() == "style";
                let new = element(&tag, resolver, leads);
                let new = if is_start { Event::Start(new) } else { Event::Empty(new) };
                writer.write_event(new).ok()?;
            }
            Event::Text(text) if is_style => {
                let css = sheet(&text, resolver, leads);
                writer.write_event(Event::Text(BytesText::from_escaped(css))).ok()?;
            }
            Event::CData(text) if is_style => {
                let css = sheet(&text, resolver, leads);
                writer.write_event(Event::Text(BytesText::new(&css))).ok()?;
            }
            // The text is in UTF-8 by now, and no other document makes it another one.
            Event::Decl(_) | Event::PI(_) => {}
            Event::DocType(kind) => {
                let is_harmful = kind.contains("<!ENTITY") && has_markup(&kind);
                if is_harmful {
                    return None;
                }
                writer.write_event(Event::DocType(kind)).ok()?;
            }
            Event::End(tag) => {
                is_style = false;
                writer.write_event(Event::End(tag)).ok()?;
            }
            other => writer.write_event(other).ok()?,
        }
    }
    String::from_utf8(writer.into_inner()).ok()
}

/// Whether a declaration of entities says more than texts: markup, references, or a name of another file.
fn has_markup(kind: &str) -> bool {
    let mut declared = kind.split("<!ENTITY").skip(1);
    declared.any(|entity| {
        let end = entity.find('>').unwrap_or(entity.len());
        let text = &entity[..end];
        text.contains(['<', '&', '%']) || text.contains("SYSTEM") || text.contains("PUBLIC")
    })
}

fn is_dropped(tag: &BytesStart<'_>) -> bool {
    let name = tag.local_name();
    let moves_link = || {
        let mut attributes = tag.attributes();
        attributes
            .with_checks(false)
            .flatten()
            .any(|own| own.key.as_ref() == "attributeName" && own.value.ends_with("href"))
    };
    let is_animation = matches!(name.as_ref(), "set" | "animate");
    DROPPED.contains(&name.as_ref()) || is_animation && moves_link()
}

fn element<'a>(tag: &BytesStart<'a>, resolver: &Resolver, leads: &mut dyn Leads) -> BytesStart<'a> {
    let mut new = BytesStart::new(tag.name().as_ref().to_owned());
    for attribute in tag.attributes().with_checks(false).flatten() {
        let local = attribute.key.local_name();
        let local = local.as_ref();
        if local.to_ascii_lowercase().starts_with("on") || local == "srcset" {
            continue;
        }
        let plain = quick_xml::escape::unescape(&attribute.value);
        let value = match (local, plain) {
            (name, Ok(css)) if STYLES.contains(&name) => sheet(&css, resolver, leads),
            (name, Ok(value)) if ADDRESSES.contains(&name) => {
                let name = tag.local_name();
                let is_shown = matches!(name.as_ref(), "image" | "feImage" | "use" | "img");
                let usage = if is_shown { Usage::Other } else { Usage::Link };
                match target(&value, usage, None, resolver, leads) {
                    Target::AsItIs => value.into_owned(),
                    Target::Nowhere => continue,
                    Target::To(link) => link,
                }
            }
            // An entity of the document itself.
            (name, Err(_)) if ADDRESSES.contains(&name) || STYLES.contains(&name) => continue,
            _ => {
                new.push_attribute(attribute);
                continue;
            }
        };
        new.push_attribute((attribute.key.as_ref(), value.as_str()));
    }
    new
}
