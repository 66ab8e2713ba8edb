//! Random steps of a fleet of three nodes.

use archivist_core::fleet::{HostKey, NewPage, Pace};
use proptest::collection::vec;
use proptest::prelude::*;
use std::time::Duration;

#[derive(Clone, Debug)]
pub enum Step {
    Hello { node: u8, boot: u8, uptime: u16 },
    Wait { seconds: u16 },
    Failover,
    Reserve { node: u8, count: u8 },
    Submit { node: u8, crawl: u8, limit: u8, pages: Vec<(u8, u8, u8)> },
    Claim { node: u8, hosts: u8, pages: u8 },
    Renew { node: u8, skip: u8, refill: u8, live: bool, pace: (u8, u8, u8) },
    Record { node: u8, page: u8, cancelled: bool, children: Vec<(u8, u8, u8)> },
    GiveBack { node: u8, page: u8 },
    Release { node: u8, lease: u8, pace: Option<(u8, u8, u8)> },
    Command { node: u8, verb: u8, target: u8, of_page: bool },
    Drain { node: u8, of: u8, draining: bool },
    Leave { node: u8, of: u8 },
    Goodbye { node: u8 },
    Close { node: u8, crawl: u8 },
}

fn pages() -> impl Strategy<Value = Vec<(u8, u8, u8)>> {
    vec((0..4u8, 0..6u8, 0..3u8), 0..6)
}

fn pace() -> impl Strategy<Value = (u8, u8, u8)> {
    (0..20u8, prop_oneof![4 => Just(0u8), 1 => 0..60u8], 0..5u8)
}

pub fn step() -> impl Strategy<Value = Step> {
    let node = || 0..3u8;
    prop_oneof![
        2 => (node(), 0..2u8, 0..200u16).prop_map(|(node, boot, uptime)| Step::Hello { node, boot, uptime }),
        4 => (0..40u16).prop_map(|seconds| Step::Wait { seconds }),
        1 => (60..90u16).prop_map(|seconds| Step::Wait { seconds }),
        1 => (0..8u8).prop_filter_map("rare", |n| (n == 0).then_some(Step::Failover)),
        1 => (node(), 0..5u8).prop_map(|(node, count)| Step::Reserve { node, count }),
        5 => (node(), 0..4u8, 0..9u8, pages())
            .prop_map(|(node, crawl, limit, pages)| Step::Submit { node, crawl, limit, pages }),
        8 => (node(), 0..4u8, 1..4u8).prop_map(|(node, hosts, pages)| Step::Claim { node, hosts, pages }),
        5 => (node(), 0..8u8, 0..5u8, any::<bool>(), pace())
            .prop_map(|(node, skip, refill, live, pace)| Step::Renew { node, skip, refill, live, pace }),
        10 => (node(), any::<u8>(), any::<bool>(), pages())
            .prop_map(|(node, page, cancelled, children)| Step::Record { node, page, cancelled, children }),
        3 => (node(), any::<u8>()).prop_map(|(node, page)| Step::GiveBack { node, page }),
        5 => (node(), any::<u8>(), proptest::option::of(pace()))
            .prop_map(|(node, lease, pace)| Step::Release { node, lease, pace }),
        5 => (node(), 0..4u8, any::<u8>(), any::<bool>())
            .prop_map(|(node, verb, target, of_page)| Step::Command { node, verb, target, of_page }),
        1 => (node(), 0..4u8, any::<bool>()).prop_map(|(node, of, draining)| Step::Drain { node, of, draining }),
        1 => (node(), 0..12u8).prop_map(|(node, of)| Step::Leave { node, of }),
        1 => node().prop_map(|node| Step::Goodbye { node }),
        1 => (node(), 0..4u8).prop_map(|(node, crawl)| Step::Close { node, crawl }),
    ]
}

pub fn secs(seconds: u8) -> Duration {
    Duration::from_secs(seconds.into())
}

pub fn pace_of((next, blocked, delay): (u8, u8, u8)) -> Pace {
    Pace { next_in: secs(next), blocked_for: secs(blocked), delay: secs(delay) }
}

pub fn new_pages(pages: &[(u8, u8, u8)]) -> Vec<NewPage> {
    let page = |(host, path, depth): &(u8, u8, u8)| NewPage {
        url: format!("https://{host}.example/{path}"),
        host: HostKey(format!("{host}.example")),
        depth: u32::from(*depth),
        given: *depth == 0,
        title: (*path == 0).then(|| "zero\0".to_owned()),
        bookmarked_at: None,
        tags: vec![format!("t{path}")],
    };
    pages.iter().map(page).collect()
}
