//! The units of a crawl or page on this machine.

use super::rows::rows;
use super::{Kind, Picture, Subject, first};
use crate::client::exit::Failure;
use crate::client::paging::Source;
use crate::client::server::Server;
use crate::display::text;
use archivist_core::model::Owner;
use archivist_core::text::human_size;
use archivist_shared::bus::documents::report::{Crawl, Filter, Snapshot, Span};

pub async fn picture(server: &Server, id: Owner, limit: u32) -> Result<Picture, Failure> {
    let source = Source::Machine(server);
    let subject = match id {
        Owner::Crawl(_) => {
            let crawl: Option<Crawl> = source.find(id).await?;
            crawl.as_ref().map(Subject::of_crawl)
        }
        Owner::Snapshot(_) => {
            let page: Option<Snapshot> = source.find(id).await?;
            page.as_ref().map(Subject::of_page)
        }
    };
    let subject = subject.ok_or_else(|| Failure::failed(format!("there is no {id}")))?;
    let spans = first(source, limit, |after, limit| Filter { limit, after, ..Filter::of(id) });
    let (spans, more) = spans.await?;
    Ok(of(subject, &spans, more))
}

/// `more` says that only the first units are drawn.
pub fn of(subject: Subject, spans: &[Span], more: bool) -> Picture {
    let page = match subject.id {
        Owner::Crawl(_) => "; archivist plot s345 draws one page",
        Owner::Snapshot(_) => "",
    };
    let left_out = || format!("the first {} units; --limit 0 draws all{page}", spans.len());
    Picture {
        kind: Kind::Units,
        about: about(spans, more),
        rows: rows(subject.id, spans),
        left_out: more.then(left_out),
        subject,
    }
}

fn about(spans: &[Span], more: bool) -> Vec<String> {
    let mut words = vec![if more {
        format!("the first {} units", spans.len())
    } else {
        format!("{} units", spans.len())
    }];
    let begin = spans.iter().filter_map(|span| span.started_at).min();
    let end = spans.iter().filter_map(|span| span.ended_at).max();
    if let (Some(begin), Some(end)) = (begin, end) {
        words.push(super::draw::from_first_to_last(begin, end));
    }
    let cpu: u64 = spans.iter().filter_map(|span| span.cpu_usec).sum();
    words.push(format!("{} CPU", text::cpu(cpu)));
    let peak = spans.iter().filter_map(|span| span.memory_peak).max();
    words.extend(peak.map(|peak| format!("at most {} in one unit", human_size(peak))));
    words
}
