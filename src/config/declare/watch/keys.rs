//! The keys of `[Watch]` (archivist.watch(5)).

use super::probe;
use super::{Missed, NAME_ALLOWED, Schedule, Watch, When, is_name};
use crate::alert::Alert;
use crate::declare::reader::Reader;
use archivist_core::model::{
    CheckKind, PageUrl, PersonaName, ProbeBody, Task, parse_line, without_userinfo,
};
use archivist_core::text::{exact_span, is_value_name};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

/// Section of all keys.
pub const SECTION: &str = "Watch";

declared_keys! {
    /// A line of text that archivist watch show prints
    Label;
    /// Lines of text that archivist watch show prints; may be given more than once
    Notes;
    /// One or more sites; may be given more than once
    ///
    /// An empty assignment removes all previous entries.
    ///
    /// With the single URL 'archivebox://update', the watch has no site: at the times of Archive=,
    /// which must be set, it does the same as archivist update for the whole archive.
    URL;
    /// A file with further URLs, which is a list as for archivist add
    ///
    /// It is read at every check. What is refused is reported with its line by archivist watch add,
    /// archivist watch show, archivist why and archivist doctor, and in the journal when it
    /// changes; the other URLs are watched.
    URLFile;
    /// When to check whether the sites answer
    ///
    /// Schedules are 'every' and a time span, which is aligned to the clock if it divides a minute,
    /// an hour or a day ('every 5min' is at :00, :05, :10 ...), 'every day' and the like; a
    /// calendar expression of systemd.time(7), such as 'hourly'; the five fields of crontab(5),
    /// such as '0 4 * * mon-fri'; or 'no'. A cron expression that restricts days of the month and
    /// of the week is refused: cron requires one of them, systemd both.
    Status = shown_schedule(CheckKind::Status);
    /// When to measure the sites with Lighthouse, a schedule as for Status=
    Lighthouse = shown_schedule(CheckKind::Lighthouse);
    /// When to crawl the sites for broken links, a schedule as for Status=
    Crawl = shown_schedule(CheckKind::Crawl);
    /// When to archive the sites, a schedule as for Status=
    Archive = shown_schedule(CheckKind::Archive);
    /// What to do about times that passed while the machine was off:
    ///
    /// 'one' check for all of them (Persistent= of systemd.timer(5)), or 'skip'.
    Missed = shown_missed(built_in().missed);
    /// Delay each timer of the watch by a fixed part of this time span
    ///
    /// It is RandomizedDelaySec= with FixedRandomDelay=, so that hundreds of watches do not start
    /// in the same second.
    Spread = exact_span(built_in().spread);
    /// How long results of all kinds are kept
    ///
    /// Older results are deleted once a day. The newest result of each kind and site stays until
    /// the next one replaces it, for a year at most. Of an archive check, the result stays while
    /// its crawl is open.
    Retention = format!(
        "{} for status checks and alerts, {} for the other kinds",
        exact_span(built_in().retention(CheckKind::Status)),
        exact_span(built_in().retention(CheckKind::Crawl)),
    );
    /// The same as Retention= for status checks and alerts
    StatusRetention;
    /// The same as Retention= for Lighthouse checks
    LighthouseRetention;
    /// The same as Retention= for crawl checks
    CrawlRetention;
    /// The same as Retention= for archive checks
    ArchiveRetention;
    /// Number of consecutive failed status checks after which a site is down
    ///
    /// It is up again after the first good one.
    DownAfter = built_in().down_after;
    /// Status numbers and ranges of them that are good for a status check, such as '200-299,401'
    ///
    /// If a redirect is among them, the check does not follow it.
    ///
    /// This key is only for status checks, as Keyword=, NotKeyword=, Method=, Data=, Body= and
    /// CertificateWarnDays=: the other kinds have no single answer to judge. archivist watch add
    /// and archivist watch show name the scheduled checks that leave them out; with Status=no, they
    /// are a problem of the file.
    Expect = "200-299";
    /// Text that the body must contain; may be given more than once
    ///
    /// An empty assignment removes all previous ones. The first MiB of the body is read as a
    /// browser reads its encoding, and compared including tags and case.
    Keyword;
    /// Text that the body must not contain, as Keyword=
    NotKeyword;
    /// GET, HEAD, POST, PUT, PATCH, DELETE or OPTIONS
    ///
    /// With Data=, the default is POST. As browsers do, the check uses GET after a redirect of a
    /// POST with 301, 302 or 303.
    Method = built_in().probe.method();
    /// A header of the request, 'Name: value', in addition to those of the check or in their place
    ///
    /// May be given more than once; an empty assignment removes all previous ones. Status and crawl
    /// checks send it. After a redirect to another site, and to other sites that a crawl check
    /// reads, only Accept, Accept-Language and User-Agent are sent. Lighthouse would send it to all
    /// sites that the page loads from: its checks are skipped, with that reason, unless all headers
    /// are of these three names.
    ///
    /// archivist watch show prints the headers. The value is hidden if the words of the name say
    /// that it is a secret, as of Authorization, Proxy-Authorization, Cookie, X-Api-Key and
    /// X-Auth-Token. Results have neither these values nor those of cookies that the server sets.
    /// The file itself has the secret: archivist watch add writes a file with a secret in a header,
    /// in Data=, in ArchiveSettings= or with a password in a URL for its owner alone (mode 0600),
    /// and archivist doctor warns of other such files that all users can read.
    Header;
    /// As Header=, with a value that is hidden whatever the name is
    SecretHeader;
    /// The header Accept
    Accept = "*/*";
    /// Body of the request
    ///
    /// It has the type application/x-www-form-urlencoded if no Header= has another one.
    Data;
    /// How much of the body must arrive:
    ///
    /// 'no', 'start' (the first bytes) or 'whole' (all of it, of which the first MiB counts).
    Body = shown_body(built_in().probe.body);
    /// Days before the end of the certificate from which on a status check warns
    ///
    /// A warning is no failure: archivist watch list and archivist watch history print it with the
    /// result, and archivist watch show prints the date. archivist status and its --json list these
    /// certificates, and those that have expired, with the days. 0 turns it off.
    ///
    /// When the certificate has expired, the status check fails with the date, and
    /// 'certificate_days' in archivist watch history --json is negative.
    CertificateWarnDays = built_in().probe.certificate_warn_days;
    /// The certificate with which status and crawl checks prove who they are
    ///
    /// It is the absolute path of a file in PEM, or the name of a credential of the machine, such
    /// as a file in /etc/credstore. The certificate may be followed by those that lead to its
    /// authority, and by the key. The service manager reads both as root and passes them to the
    /// unit of the check (LoadCredential= of systemd.exec(5)), so the files should have the mode
    /// 0600. Only the host of the URL gets the certificate, and only if it asks. Without one, a
    /// server that demands a certificate is down with that reason. A file that is missing or does
    /// not fit ends the check with that reason, and the state of the site does not change.
    /// Lighthouse checks are skipped.
    ClientCertificate;
    /// The key of ClientCertificate=, named in the same way
    ///
    /// It is not needed if the file of the certificate has the key. The key has no passphrase.
    ClientKey;
    /// What to start when a site goes down
    ///
    /// Either a unit, such as pager.service; of a template such as notify@.service, the instance
    /// with the name of the watch is started. Or a command line: it must begin with an absolute
    /// path, is split into arguments as by sh(1) (quotes, backslashes and comments), and is not
    /// expanded. The command runs as archivist-alert-NUMBER.service for at most 60 s, as user
    /// archivist-hook, with ARCHIVIST_WATCH, ARCHIVIST_URL, ARCHIVIST_STATE (down or up),
    /// ARCHIVIST_SINCE, ARCHIVIST_STATUS_CODE and ARCHIVIST_ERROR in its environment. The
    /// properties of the unit, which every local user can read, contain neither these variables nor
    /// the arguments; the process list contains the arguments while the command runs.
    OnDown;
    /// What to start when a site is up again, as OnDown=
    OnRecovery;
    /// As --depth of archivist add
    ArchiveDepth = built_in().archiving.depth;
    /// As --tag of archivist add
    ArchiveTags;
    /// As --plugins of archivist add
    ArchivePlugins;
    /// Which pages are archived: 'always' or 'only-new'
    ///
    /// With 'only-new', pages that the archive already has are left out: with ArchiveDepth=0 the
    /// given pages, otherwise the pages that links lead to.
    ArchivePages = if built_in().archiving.only_new { "only-new" } else { "always" };
    /// As --persona of archivist add
    ArchivePersona;
    /// A setting of a plugin or a limit for the crawls, KEY=VALUE, as --set of archivist add
    ///
    /// May be given more than once, one setting in each line; an empty assignment removes all
    /// previous ones. CRAWL_MAX_URLS= limits the pages of a crawl, CRAWL_MAX_SIZE= and
    /// SNAPSHOT_MAX_SIZE= the bytes, CRAWL_TIMEOUT= the time; CRAWL_SAME_HOST=true keeps them on the
    /// host of the site. ANSWER_TIMEOUT= is the time in which a
    /// page must answer, also for the other checks; without it, and without one in archivist.conf(5),
    /// status checks wait 10 seconds, and crawl checks 15. The checks of Archive= fail if no
    /// plugin has the setting, or if the persona does not exist.
    ArchiveSettings;
}

/// Defaults, for the manual.
fn built_in() -> Watch {
    Watch::new("")
}

fn shown_schedule(kind: CheckKind) -> String {
    built_in().schedule(kind).words
}

fn shown_missed(missed: Missed) -> &'static str {
    match missed {
        Missed::One => "one",
        Missed::Skip => "skip",
    }
}

fn shown_body(body: ProbeBody) -> &'static str {
    match body {
        ProbeBody::No => "no",
        ProbeBody::Start => "start",
        ProbeBody::Whole => "whole",
    }
}

const SCHEDULES: [(&str, CheckKind); 4] = [
    ("Status", CheckKind::Status),
    ("Lighthouse", CheckKind::Lighthouse),
    ("Crawl", CheckKind::Crawl),
    ("Archive", CheckKind::Archive),
];

/// Reads a watch. A bad value is a problem of the reader, and the key keeps its default.
pub fn read(reader: &mut Reader<'_>) -> Watch {
    let mut watch = Watch::new(reader.name());
    if !is_name(reader.name()) {
        let name = reader.name();
        reader.refuse_all(&format!("'{name}' cannot be the name of a watch: {NAME_ALLOWED}"));
    }
    watch.label = reader.value("Label", text).unwrap_or_default();
    let notes = reader.all("Notes").into_iter();
    watch.notes = notes.map(|entry| entry.value.clone()).collect();
    watch.urls = urls(reader);
    watch.url_file = reader.value("URLFile", absolute);
    for (key, kind) in SCHEDULES {
        if let Some(schedule) = reader.value(key, Schedule::parse) {
            watch.schedules.insert(kind, schedule);
        }
    }
    if let Some(missed) = reader.value("Missed", missed) {
        watch.missed = missed;
    }
    if let Some(spread) = reader.span("Spread") {
        watch.spread = spread;
    }
    watch.retention = retention(reader);
    if let Some(failures) = reader.number("DownAfter", 1..=100) {
        watch.down_after = failures;
    }
    watch.on_down = reader.value("OnDown", Alert::parse);
    watch.on_recovery = reader.value("OnRecovery", Alert::parse);
    watch.probe = probe::read(reader);
    warn_of_idle_keys(reader, &watch);
    watch.archiving.depth = reader.number("ArchiveDepth", 0..=4).unwrap_or(0);
    watch.archiving.tags = words(reader, "ArchiveTags");
    watch.archiving.plugins = words(reader, "ArchivePlugins");
    watch.archiving.only_new = reader.value("ArchivePages", only_new).unwrap_or(false);
    watch.archiving.settings = settings(reader);
    if !reader.has_errors() && watch.urls.is_empty() && watch.url_file.is_none() {
        reader.refuse_all("nothing to watch: neither URL= nor URLFile= is set in [Watch]");
    }
    if watch.updates() {
        refuse_sites(reader, &watch);
    }
    watch
}

/// Refuses what a watch that updates the archive cannot have.
fn refuse_sites(reader: &mut Reader<'_>, watch: &Watch) {
    let update = Task::Update.url();
    if watch.urls.len() > 1 || watch.url_file.is_some() {
        reader.refuse_all(&format!("{update} is the only URL of its watch"));
    }
    if watch.schedule(CheckKind::Archive).when == When::Never {
        let what = format!("{update} needs a schedule, such as Archive=weekly");
        reader.refuse_all(&what);
    }
    for (key, kind) in SCHEDULES {
        if kind != CheckKind::Archive
            && watch.schedule(kind).when != When::Never
            && let Some(entry) = reader.last(key)
        {
            reader.refuse(entry, &format!("{key}= needs a site, and {update} is none"));
        }
    }
}

/// Warns of keys that only status checks use if there are none.
fn warn_of_idle_keys(reader: &mut Reader<'_>, watch: &Watch) {
    if watch.schedule(CheckKind::Status).when != When::Never {
        return;
    }
    for key in watch.probe.keys_of_status() {
        if let Some(entry) = reader.last(key.trim_end_matches('=')) {
            let what = format!("only status checks use {key}, and Status=no turns them off");
            reader.warn(entry, &what);
        }
    }
}

/// Returns the retention of each kind, from its own key or from `Retention=`. Alerts are kept as
/// long as status checks.
fn retention(reader: &mut Reader<'_>) -> BTreeMap<CheckKind, Duration> {
    let of_all = reader.span("Retention");
    let mut retention = BTreeMap::new();
    for (key, kind) in SCHEDULES {
        let own = reader.span(&format!("{key}Retention"));
        retention.extend(own.or(of_all).map(|span| (kind, span)));
    }
    let of_status = retention.get(&CheckKind::Status).copied();
    retention.extend(of_status.map(|span| (CheckKind::Alert, span)));
    retention
}

fn urls(reader: &mut Reader<'_>) -> Vec<String> {
    let mut urls = Vec::new();
    for entry in reader.all("URL") {
        for word in entry.value.split_whitespace() {
            if Task::parse(word) == Some(Task::Update) {
                urls.push(Task::Update.url());
                continue;
            }
            let url = parse_line(word.as_bytes()).map(|page| page.map(|page| page.url));
            match url.unwrap_or_else(|| PageUrl::parse(word)) {
                Ok(url) if urls.iter().any(|known| known == url.as_str()) => {}
                Ok(url) => urls.push(url.as_str().to_owned()),
                Err(error) => {
                    reader.refuse(entry, &format!("'{}': {error}", without_userinfo(word)));
                    break;
                }
            }
        }
    }
    urls
}

/// Returns the settings of the crawls: those of `ArchiveSettings=`, one in each assignment, and the
/// persona.
fn settings(reader: &mut Reader<'_>) -> BTreeMap<String, String> {
    let mut settings = BTreeMap::new();
    let persona = reader.value("ArchivePersona", |name| {
        let name = name.parse::<PersonaName>();
        name.map_err(|error| error.to_string())
    });
    settings.extend(persona.map(|name| ("ACTIVE_PERSONA".to_owned(), name.to_string())));
    for entry in reader.all("ArchiveSettings") {
        match entry.value.split_once('=') {
            Some((key, value)) if is_value_name(key) => {
                settings.insert(key.to_owned(), value.to_owned());
            }
            _ => {
                let what = format!(
                    "'{}' is not KEY=VALUE of a plugin's setting, such as WGET_TIMEOUT=30; write \
                     each setting on a line of its own",
                    entry.value
                );
                reader.refuse(entry, &what);
            }
        }
    }
    settings
}

fn text(value: &str) -> Result<String, String> {
    Ok(value.to_owned())
}

fn absolute(value: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(value);
    let climbs = path.components().any(|part| part.as_os_str() == "..");
    if path.is_absolute() && !climbs {
        Ok(path)
    } else {
        Err(format!("'{value}' is not an absolute path without '..'"))
    }
}

fn missed(value: &str) -> Result<Missed, String> {
    match value {
        "one" => Ok(Missed::One),
        "skip" => Ok(Missed::Skip),
        _ => Err(format!("'{value}' is neither 'one' nor 'skip'")),
    }
}

fn only_new(value: &str) -> Result<bool, String> {
    match value {
        "always" => Ok(false),
        "only-new" => Ok(true),
        _ => Err(format!("'{value}' is neither 'always' nor 'only-new'")),
    }
}

/// Returns the words of all assignments of a list since the last empty one.
fn words(reader: &Reader<'_>, key: &str) -> Vec<String> {
    let entries = reader.all(key).into_iter();
    entries
        .flat_map(|entry| entry.value.split([' ', '\t', ',']))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}
