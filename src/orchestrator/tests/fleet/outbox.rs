//! How much of the outbox is sent at a time.

use super::node::*;
use archivist_core::fleet::{Delivery, NodeReply, NodeRequest};
use archivist_core::model::{CrawlId, TAG_MAX, TAGS_MAX};
use archivist_shared::bus::documents::report::AddOptions;

/// The bus ends the connection of the orchestrator if an answer is longer than 32 MiB.
#[test]
fn answer_about_the_outbox_has_a_limit() {
    let mut bed = node();
    let reply = Ok(NodeReply::CrawlIds { first: CrawlId(70), count: 100 });
    let number = bed.holdings().entries[0].number;
    bed.deliver(Delivery::Answered { number, reply }).unwrap();
    // Each page of the list has the tags of its crawl.
    let options = AddOptions {
        tags: (0..TAGS_MAX).map(|n| format!("{n:0>TAG_MAX$}")).collect(),
        ..AddOptions::default()
    };
    for list in 0..2 {
        let pages = (0..900).map(|n| format!("http://{HOST}/{list}/{n}\n"));
        let pages = pages.collect::<String>();
        assert_eq!(bed.add_with(&pages, options.clone()).accepted, 900);
    }
    let (mut sent, mut answers) = (0, 0);
    loop {
        let holdings = bed.holdings();
        let length = serde_json::to_string(&holdings).unwrap().len();
        assert!(length < 8 << 20, "{length}");
        let submits = holdings.entries.iter().map(|entry| match &entry.request {
            NodeRequest::Submit(submit) => submit.pages.len(),
            _ => 0,
        });
        let pages: usize = submits.sum();
        if pages == 0 {
            break;
        }
        sent += pages;
        answers += 1;
        for entry in holdings.entries {
            let (number, reply) = (entry.number, Ok(NodeReply::Done));
            bed.deliver(Delivery::Answered { number, reply }).unwrap();
        }
    }
    assert_eq!(sent, 1800);
    assert!(answers > 3, "{answers}");
}
