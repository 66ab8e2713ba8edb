use super::*;
use crate::config::ini;
use std::path::Path;

fn read(text: &str) -> (Watch, Vec<String>) {
    let parsed = ini::parse(text, Path::new("/etc/archivist/site.watch"));
    let (watch, problems) = Watch::read("site", &parsed.entries);
    let told = problems.iter().map(|problem| match &problem.place {
        Some(place) => format!("{}: {}", place.line, problem.what),
        None => problem.what.clone(),
    });
    (watch, told.collect())
}

#[test]
fn what_is_not_said_is_as_it_was_in_heartwood() {
    let (watch, problems) = read("[Watch]\nURL=https://example.org\n");
    assert_eq!(problems, [""; 0]);
    assert_eq!(watch.urls, ["https://example.org/"]);
    let words = |kind| watch.schedule(kind).words;
    assert_eq!(words(CheckKind::Status), "every 3min");
    assert_eq!(
        watch.schedule(CheckKind::Status).when,
        When::Calendar("*:0/3".into())
    );
    assert_eq!(words(CheckKind::Lighthouse), "daily");
    assert_eq!(words(CheckKind::Crawl), "weekly");
    assert_eq!(words(CheckKind::Archive), "no");
    assert_eq!(watch.kinds().len(), 3);
    assert_eq!(watch.retention, Duration::from_secs(3 * 86_400));
    assert_eq!((watch.down_after, watch.missed), (2, Missed::One));
}

#[test]
fn everything_can_be_said() {
    let (watch, problems) = read(
        "[Unit]\nDescription=other\n[Watch]\nURL=http://a.example http://b.example\nURL=http://a.example/\n\
         URLFile=/etc/sites\nStatus=every 7min\nLighthouse=no\nCrawl=Mon 03:00\nArchive=daily\n\
         Missed=skip\nSpread=1min\nRetention=30d\nDownAfter=3\nOnDown=pager.service\n\
         OnRecovery=/bin/true up\nArchiveDepth=1\nArchiveTags=news,feeds\nArchivePages=only-new\n",
    );
    assert_eq!(problems, [""; 0]);
    assert_eq!(watch.urls.len(), 2);
    assert_eq!(
        watch.kinds(),
        [CheckKind::Status, CheckKind::Crawl, CheckKind::Archive]
    );
    assert_eq!(watch.missed, Missed::Skip);
    assert_eq!(watch.archiving.tags, ["news", "feeds"]);
    assert!(watch.archiving.only_new && watch.archiving.depth == 1);
}

#[test]
fn nonsense_is_named_with_its_line_and_the_rest_holds() {
    let (watch, problems) = read(
        "[Watch]\nURL=http://a.example\nURL=nothing at all\nStats=daily\nStatus=every now and then\n\
         OnDown=curl\nRetention=long\n",
    );
    assert_eq!(problems.len(), 4, "{problems:#?}");
    assert!(problems[0].starts_with("3: 'nothing'"), "{}", problems[0]);
    assert!(problems[1].starts_with("5: 'every now"), "{}", problems[1]);
    assert_eq!(watch.schedule(CheckKind::Status).words, "every 3min");
    let (_, problems) = read("[Watch]\nStatus=daily\n");
    assert!(problems[0].starts_with("nothing to watch"));
}

#[test]
fn names_never_need_escaping() {
    for good in ["site", "a.example", "9-lives_x"] {
        assert!(is_name(good), "{good}");
    }
    for bad in ["", "-x", "../x", "a b", "a@b", "ü", ".hidden"] {
        assert!(!is_name(bad), "{bad}");
    }
}
