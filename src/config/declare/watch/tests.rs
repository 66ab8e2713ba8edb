use super::*;
use crate::ini;
use archivist_core::model::ProbeBody;

fn read(text: &str) -> (Watch, Vec<String>) {
    let path = PathBuf::from("site.watch");
    let parsed = ini::parse(text, &path);
    let (watch, problems) = Watch::of(&Declaration {
        kind: Kind::Watch,
        name: "site".to_owned(),
        path,
        entries: parsed.entries,
        malformed: parsed.malformed,
    });
    let texts = problems.iter().map(Problem::text);
    (watch, texts.collect())
}

#[test]
fn defaults_of_a_watch() {
    let (watch, problems) = read("[Watch]\nURL=https://example.org\n");
    assert_eq!(problems, [""; 0]);
    assert_eq!(watch.urls, ["https://example.org/"]);
    let words = |kind| watch.schedule(kind).words;
    assert_eq!(words(CheckKind::Status), "every 3min");
    assert_eq!(watch.schedule(CheckKind::Status).when, When::Calendar("*:0/3".into()));
    assert_eq!(words(CheckKind::Lighthouse), "daily");
    assert_eq!(words(CheckKind::Crawl), "weekly");
    assert_eq!(words(CheckKind::Archive), "no");
    assert_eq!(watch.kinds().len(), 3);
    let days = |kind| watch.retention(kind).as_secs() / 86_400;
    assert_eq!(days(CheckKind::Status), 3);
    assert_eq!(days(CheckKind::Crawl), 90, "more than one weekly result");
    assert_eq!((watch.down_after, watch.missed), (2, Missed::One));
}

#[test]
fn a_watch_updates_the_archive() {
    let (watch, problems) = read("[Watch]\nURL=archivebox://update\nArchive=weekly\n");
    assert_eq!(problems, [""; 0]);
    assert!(watch.updates());
    assert_eq!(watch.kinds(), [CheckKind::Archive]);
    for (rest, why) in [
        ("", "needs a schedule"),
        ("Archive=weekly\nURL=http://a.test/\n", "the only URL"),
        ("Archive=weekly\nURLFile=/etc/sites\n", "the only URL"),
        ("Archive=weekly\nStatus=daily\n", "Status= needs a site"),
    ] {
        let (_, problems) = read(&format!("[Watch]\nURL=archivebox://update\n{rest}"));
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(problems[0].contains(why), "{problems:?}");
    }
    let (watch, problems) = read("[Watch]\nURL=archivebox://install\nArchive=weekly\n");
    assert!(!watch.updates() && !problems.is_empty());
}

#[test]
fn urls_with_separators_are_refused() {
    let (watch, problems) = read("[Watch]\nURL=http://a.test/a, http://a.test/b\n");
    assert!(watch.urls.is_empty(), "{:?}", watch.urls);
    assert!(problems[0].contains("ends in a comma"), "{problems:?}");
    let (watch, _) = read("[Watch]\nURL=<http://a.test/a> \u{feff}http://a.test/b\u{a0}\n");
    assert_eq!(watch.urls, ["http://a.test/a", "http://a.test/b"]);
}

#[test]
fn every_key_is_read() {
    let (watch, problems) = read(
        "[Unit]\nDescription=other\n[Watch]\nURL=http://a.example http://b.example\nURL=http://a.example/\n\
         URLFile=/etc/sites\nStatus=every 7min\nLighthouse=no\nCrawl=Mon 03:00\nArchive=daily\n\
         Missed=skip\nSpread=1min\nRetention=30d\nStatusRetention=7d\nDownAfter=3\nOnDown=pager.service\n\
         OnRecovery=/bin/true up\nLabel=The shop\nNotes=Ask Eve\nNotes=first\n\
         ArchivePersona=member\nArchiveSettings=WGET_ARGS=[\"-q\", \"-4\"]\n\
         Expect=200-299,401\nKeyword=Welcome to\nKeyword=shop\nNotKeyword=Fatal error\nMethod=PUT\n\
         Header=X-Key: a:b\nHeader=User-Agent: me\nAccept=text/html, */*;q=0.1\nData={\"a\": 1}\nBody=whole\n\
         CertificateWarnDays=30\n\
         ArchiveSettings=CRAWL_MAX_URLS=50\nArchiveDepth=1\nArchiveTags=news,feeds\nArchivePages=only-new\n",
    );
    assert_eq!(problems, [""; 0]);
    assert_eq!(watch.urls.len(), 2);
    assert_eq!(watch.kinds(), [CheckKind::Status, CheckKind::Crawl, CheckKind::Archive]);
    assert_eq!(watch.missed, Missed::Skip);
    let days = |kind| watch.retention(kind).as_secs() / 86_400;
    assert_eq!(CheckKind::SCHEDULED.map(days), [7, 30, 30, 30]);
    assert_eq!(days(CheckKind::Alert), 7);
    assert_eq!(watch.archiving.tags, ["news", "feeds"]);
    let pair = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
    let headers = [("Accept", "text/html, */*;q=0.1"), ("X-Key", "a:b"), ("User-Agent", "me")];
    let probe = Probe {
        method: Some("PUT".into()),
        headers: headers.map(pair).into(),
        data: Some(r#"{"a": 1}"#.into()),
        expect: vec![(200, 299), (401, 401)],
        keywords: vec!["Welcome to".into(), "shop".into()],
        not_keywords: vec!["Fatal error".into()],
        body: ProbeBody::Whole,
        certificate_warn_days: 30,
        ..Probe::default()
    };
    assert_eq!(watch.probe, probe);
    assert_eq!(watch.label, "The shop");
    assert_eq!(watch.notes, ["Ask Eve", "first"]);
    let settings =
        [("ACTIVE_PERSONA", "member"), ("CRAWL_MAX_URLS", "50"), ("WGET_ARGS", r#"["-q", "-4"]"#)]
            .map(|(key, value)| (key.to_owned(), value.to_owned()));
    assert_eq!(watch.archiving.settings, settings.into());
    assert!(watch.archiving.only_new && watch.archiving.depth == 1);
}

#[test]
fn bad_values_are_located_and_the_rest_is_read() {
    let (watch, problems) = read(
        "[Watch]\nURL=http://a.example\nURL=nothing at all\nStats=daily\nStatus=every now and then\n\
         OnDown=curl\nRetention=long\nArchiveSettings=timeout=3\nArchivePersona=../x\n",
    );
    assert_eq!(problems.len(), 6, "{problems:#?}");
    assert!(problems[0].starts_with("site.watch:3: 'nothing'"), "{}", problems[0]);
    assert!(problems[1].starts_with("site.watch:5: 'every now"), "{}", problems[1]);
    assert_eq!(watch.schedule(CheckKind::Status).words, "every 3min");
    let (_, problems) = read("[Watch]\nStatus=daily\n");
    assert!(problems[0].contains(": nothing to watch"));
}

#[test]
fn requests_that_make_no_sense_are_refused() {
    for (line, want) in [
        ("Expect=2xx", "'2xx' is neither a status"),
        ("Method=get", "'get' is not a method"),
        ("Header=X Key", "this is not a header"),
        ("SecretHeader=X Key", "this is not a header"),
        ("ClientCertificate=a/b", "'a/b' is neither an absolute path"),
        ("ClientKey=/etc/key", "requires ClientCertificate="),
        ("Status=no\nKeyword=a", "only status checks use Keyword=, and Status=no turns them off"),
        ("URL=htp://a:b@c/", "'htp://c/'"),
        ("Body=yes", "'yes' is none of"),
        ("CertificateWarnDays=-1", "write a number from 0 to 365"),
        ("Keyword=a\nMethod=HEAD", "require a body, which Method=HEAD"),
        ("NotKeyword=a\nBody=no", "require a body, which Body=no"),
    ] {
        let (_, problems) = read(&format!("[Watch]\nURL=http://a.example\n{line}\n"));
        assert_eq!(problems.len(), 1, "{line}: {problems:#?}");
        assert!(problems[0].contains(want), "{}", problems[0]);
    }
}

#[test]
fn secrets_and_keys_without_effect_are_known() {
    let of = |lines: &str| {
        let (watch, problems) = read(&format!("[Watch]\nURL=http://a.example\n{lines}\n"));
        assert!(problems.is_empty(), "{lines}: {problems:#?}");
        watch
    };
    for lines in [
        "Header=Authorization: Bearer 1",
        "SecretHeader=X-Shop: 1",
        "Data=password=1",
        "URL=http://a:b@c.example/",
        "ArchiveSettings=X_API_KEY=1",
    ] {
        assert!(of(lines).has_secret(), "{lines}");
    }
    assert!(!of("Header=X-Shop: 1\nClientCertificate=/etc/client.pem").has_secret());
    let watch = of("ClientCertificate=/etc/client.pem\nExpect=401\nKeyword=a");
    let identity = watch.probe.identity.as_ref().unwrap();
    assert_eq!((&*identity.certificate, &*identity.key), ("/etc/client.pem", "/etc/client.pem"));
    assert_eq!(
        watch.left_out(),
        [
            "lighthouse checks do not use Expect=, Keyword=",
            "crawl checks do not use Expect=, Keyword=",
            "lighthouse checks are skipped, set Lighthouse=no: lighthouse has no ClientCertificate=",
        ]
    );
    assert_eq!(of("Expect=401\nLighthouse=no\nCrawl=no").left_out(), [""; 0]);
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
