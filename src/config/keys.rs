//! All keys, in one table for the reader, `archivist config`, the manual and the installed
//! configuration.

use super::{NetworkMode, Settings, fleet};
use crate::alert::Alert;
use archivist_core::model::web::filter::{UrlFilter, split_commas};
use archivist_core::model::{HttpErrors, Reach};
use archivist_core::plan::{Quota, RetentionRule};
use archivist_core::store::{KEEP_ALLOWED, KeepLocal, LOCATION_ALLOWED, Location};
use archivist_core::text::{
    SIZE_ALLOWED, SPAN_ALLOWED, did_you_mean, exact_size, exact_span, is_value_name, parse_size,
    parse_span, similar,
};
use std::path::PathBuf;
use std::time::Duration;

/// Section with values for plugins, whose keys belong to the plugins.
pub const VALUES: &str = "Config";

/// One key of the configuration.
pub struct Key {
    /// Section of archivist.conf(5).
    pub section: &'static str,
    /// Name of the key.
    pub name: &'static str,
    /// Sets a non-empty value; the error says what is allowed.
    pub set: fn(&mut Settings, &str) -> Result<(), &'static str>,
    /// Restores the built-in value, as an empty assignment does.
    pub reset: fn(&mut Settings, Settings),
    /// Returns the value in the syntax of the file; lists have one line per element.
    pub show: fn(&Settings) -> String,
}

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "[{}] {}=", self.section, self.name)
    }
}

/// `= FIELD` replaces the field by what the reader returns; `+= FIELD` lets the reader add to a list.
macro_rules! set {
    (= $field:ident, $read:expr) => {
        |settings, text| {
            settings.$field = $read(text)?;
            Ok(())
        }
    };
    (+= $field:ident, $read:expr) => {
        |settings, text| $read(&mut settings.$field, text)
    };
}

/// Defines [`KEYS`] and [`TEXTS`] from one table. The doc comment of a key is its text in
/// archivist.conf(5), which adds the default, and prose by hand if the explanation is long.
macro_rules! keys {
    ($($(#[doc = $text:literal])+
       [$section:ident] $name:ident $set:tt $field:ident, $read:expr, $show:expr;)*) => {
        /// Every key of archivist.conf(5) except those of `[Config]`.
        pub const KEYS: &[Key] = &[$(Key {
            section: stringify!($section),
            name: stringify!($name),
            set: set!($set $field, $read),
            reset: |settings, built_in| settings.$field = built_in.$field,
            show: |settings| $show(&settings.$field),
        }),*];

        /// The text of each key, in the order of [`KEYS`]. They are not part of a [`Key`], so that
        /// only programs that print them contain them.
        pub const TEXTS: &[&str] = &[$(concat!($($text, "\n"),+)),*];
    };
}

keys! {
    /// Maximum number of workers of crawls, and maximum number of workers of snapshots
    ///
    /// A page mostly waits for the network, and needs some hundred megabytes of memory with a
    /// browser.
    ///
    /// With more than two processors, the default is twice their number, but at most 16.
    [Orchestrator] WorkersPerKind = workers_per_kind, count, u32::to_string;
    /// Maximum number of workers of both kinds together
    ///
    /// Crawls, which wait for their snapshots, use at most half of these slots; but one crawl and
    /// one snapshot can always run.
    ///
    /// In general, the default is twice that of WorkersPerKind=, so that both kinds can use all
    /// their slots.
    [Orchestrator] WorkersMax = workers_max, count, u32::to_string;
    /// Maximum number of snapshots of one crawl that have a worker
    ///
    /// A crawl alone can use all slots, and several crawls share them by turns.
    ///
    /// In general, the default is that of WorkersPerKind=.
    [Orchestrator] SnapshotsPerCrawl = snapshots_per_crawl, count, u32::to_string;
    /// Maximum number of snapshots of one host, over all crawls, that have a worker
    ///
    /// The default does not grow with the number of processors, because it limits the load on the
    /// server; raise it for servers of your own.
    [Orchestrator] HostWorkers = host_workers, count, u32::to_string;
    /// Minimum time between the starts of two snapshots of the same host, over all crawls
    ///
    /// Pages of other hosts continue in the meantime; the hosts of a crawl take turns.
    [Orchestrator] HostDelaySec = host_delay, span, shown_span;
    /// Maximum number of running status checks of watches, see archivist.watch(5)
    [Orchestrator] FastChecks = fast_checks, count, u32::to_string;
    /// Maximum number of running checks of the other kinds
    ///
    /// These wait while disk space or memory is short.
    [Orchestrator] SlowChecks = slow_checks, count, u32::to_string;
    /// Start nothing more while processes of archivist had to wait for memory for more than this
    /// share of the last 10 s
    ///
    /// The value is that of the kernel for archivist.slice (PSI, if the kernel has it). The reason
    /// is shown in archivist status, and work continues when the pressure falls.
    [Orchestrator] MemoryPressureMax = memory_pressure_max, percent, shown_percent;
    /// Maximum number of concurrent start requests to PID 1
    [Orchestrator] StartsInFlight = starts_in_flight, count, u32::to_string;
    /// With --exit-on-idle, exit when nothing was queued or running for this time
    [Orchestrator] IdleTimeoutSec = idle_timeout, span, shown_span;
    /// Maximum number of times that a worker is started for one crawl or snapshot
    ///
    /// An attempt is counted before the start; after the last one, a page that kills its worker
    /// every time is quarantined. An attempt that ends because the machine goes down is not
    /// counted, up to twenty times.
    [Orchestrator] AttemptsMax = attempts_max, count, u32::to_string;
    /// Delay after the first failed attempt
    ///
    /// The delay doubles with each attempt, with some jitter.
    [Orchestrator] RetrySec = retry_first, positive_span, shown_span;
    /// Maximum delay between two attempts
    [Orchestrator] RetryMaxSec = retry_longest, positive_span, shown_span;
    /// What becomes of a page whose document is an HTTP error, a status from 400 to 599
    ///
    /// The status is that of the final response.
    [Orchestrator] HttpErrors = http_errors, http_errors, HttpErrors::to_string;
    /// Maximum number of visits of a page in a row that its server refuses
    ///
    /// If a hook gets a refusing status, the visit ends: the other hooks are stopped, what they
    /// wrote is removed, and the page is queued again until the server allows the next visit
    /// (Retry-After, in seconds or as a date). If the server names no time, the delay is 10 s and
    /// doubles with each visit, with some jitter. All hooks take part in the next visit, so that
    /// all files of a page are of the same one. If only some results are retried, those of earlier
    /// visits stay. In the last visit, the answer to the browser counts if there is one, because
    /// some servers refuse only other programs. If it is refused as well, the page is sealed with
    /// the status as its reason, and its results fail except for those of headers. Refused visits
    /// do not count towards AttemptsMax=.
    [Orchestrator] HttpAttempts = http_attempts, count, u32::to_string;
    /// Maximum time that a page, and the other pages of its host, wait because a server asks for it
    [Orchestrator] HttpWaitMaxSec = http_wait_max, positive_span, shown_span;
    /// Time limit of the worker of a snapshot, and therefore of all its hooks together
    ///
    /// A snapshot that reaches this limit is sealed with the results that it has. Its open results
    /// fail, and only archivist retry runs them again. PID 1 enforces the limit, even if no
    /// orchestrator is running. If the snapshot was paused, another worker continues with the full
    /// time.
    [Orchestrator] SnapshotMaxSec = snapshot_limit, positive_span, shown_span;
    /// What to start when a crawl is sealed and nothing of it failed
    ///
    /// As for OnDown= in archivist.watch(5), the value is a unit; of a template such as
    /// notify@.service, the instance with the id of the crawl is started, notify@c12.service. Or it
    /// is a command line, which must begin with an absolute path and runs as
    /// archivist-alert-NUMBER.service for at most 60 s, as user archivist-hook, with
    /// ARCHIVIST_STATE (sealed, failed or idle), ARCHIVIST_CRAWL, ARCHIVIST_URL, ARCHIVIST_REASON,
    /// ARCHIVIST_SUCCEEDED and ARCHIVIST_FAILED (numbers of results) in its environment. Defaults
    /// to nothing.
    [Orchestrator] OnSealed = on_sealed, alert, shown;
    /// What to start when a crawl is sealed and something of it failed
    ///
    /// As for OnSealed=, the value is a unit or a command line. archivist add --wait exits with
    /// status 3 for such a crawl, because a hook failed, because a page was cancelled, given up or
    /// left out, or because the document of a page is an HTTP error. A cancelled crawl is not
    /// sealed and starts nothing. Defaults to nothing.
    [Orchestrator] OnFailed = on_failed, alert, shown;
    /// What to start when the last crawl that was queued, running or paused is sealed or cancelled
    ///
    /// As for OnSealed=, the value is a unit or a command line. Checks of watches do not count. Of
    /// a template, the instance 'idle' is started; of the variables, there is only ARCHIVIST_STATE.
    /// If another crawl is added before the start, the start is left out until that crawl has ended
    /// as well. Defaults to nothing.
    [Orchestrator] OnIdle = on_idle, alert, shown;
    /// Whether members of the group archivist may install programs into the library of the machine
    ///
    /// They do so with archivist plugins install: their hooks write there, and its programs run in
    /// the crawls of all users. If no, only root may.
    [Orchestrator] MembersInstall = members_install, yes_or_no, shown_yes_or_no;
    /// Whether members of the group archivist may delete and pin the pages of all users
    ///
    /// If no, a member deletes and pins pages of crawls that this member has added, and root those of
    /// all. In either case a pin is removed by the user who set it or by root.
    [Orchestrator] MembersDelete = members_delete, yes_or_no, shown_yes_or_no;

    /// Start nothing more while the file system of the archive has less free space than this
    ///
    /// The same is done if it has less than this plus the expected size of the pages in progress
    /// (estimated from previous pages of their crawls), or free inodes for fewer than 10000 files.
    /// The reason is shown in archivist status, and work continues when space is available again. 0
    /// turns this check off.
    [Archive] MinFreeSpace = min_free_space, size_or_none, shown_size;
    /// Absolute path of an additional directory with plugins; may be given more than once
    ///
    /// These directories are searched after /usr/share/archivist/plugins and /etc/archivist/plugins
    /// (with --user also $XDG_DATA_HOME/archivist/plugins). They and their content must belong to
    /// root, or with --user to the user, and must not be writable by others. Defaults to none.
    [Archive] PluginPath += plugin_path, directory, shown_paths;
    /// Names of plugins, separated by blanks or commas, for crawls that do not select plugins
    ///
    /// Defaults to all that are enabled.
    [Archive] Plugins += plugins, words, shown_words;
    /// Whether plugins that index pages have one index for the whole archive
    ///
    /// If no, there is one for each crawl; see DATA_DIR in archivist-hooks(7).
    [Archive] SharedIndex = shared_index, yes_or_no, shown_yes_or_no;
    /// Archive only URLs that match one of the entries, if there are any
    ///
    /// This applies both to URLs that are given and to URLs that are found. Entries are separated
    /// by commas (a comma within brackets is part of its entry), and the setting may be given more
    /// than once. An entry that consists only of letters, digits and '_ . * : -' is a domain, and
    /// also matches its subdomains; '*.example.com' matches only these. Any other entry is a
    /// regular expression that is searched in the URL, ignoring case. Defaults to none.
    [Archive] UrlAllowList += url_allow, patterns, String::clone;
    /// Do not archive URLs that match an entry, even if UrlAllowList= matches as well
    ///
    /// The format is that of UrlAllowList=. Both lists apply to pages and do not filter network
    /// traffic: hooks follow redirects and load the parts of a page from any address that they
    /// reach, see Reach= below. If this list is empty, found URLs that are parts of other pages are
    /// left out: style sheets, scripts and fonts, recognized by their file name (.css, .js, .woff2
    /// and similar) and everything on gstatic.com and fonts.googleapis.com. Defaults to none.
    [Archive] UrlDenyList += url_deny, patterns, String::clone;

    /// Share of the pages whose recordings are replayed without a network, and compared with the page
    ///
    /// yes, no, or a share such as 10%; the first page of each host is among them. A unit at idle
    /// priority, archivist-verify-N, does this when no other unit of archivist runs, one page at a
    /// time. archivist list and show have its figures; archivist status, why and metrics report pages
    /// whose replay shows less than 95 %, and archivist retry --unfaithful records pages again.
    /// With VERIFY_ENABLED=true, the hook verify replays every page of a crawl before the page ends,
    /// which takes about as long as loading the page; with VERIFY_ENABLED=false, none is replayed.
    [Archive] VerifyReplay = verify_replay, share, shown_share;

    /// How long pages are kept: older ones, or older versions of the same page, are deleted
    ///
    /// age=1y deletes pages that were visited or imported longer ago, except for the newest version
    /// of each page; with newest=no, that goes, too. versions=10 deletes a page that has ten newer
    /// versions. With both, a page goes by whichever applies first. The newest version is the
    /// newest one that was saved: its document loaded and is no error, and its files are there. A
    /// version that was not saved replaces none that was, so that a page that has disappeared from
    /// the web stays in the archive.
    ///
    /// The rule is for all pages. After tag:NAME it is for the pages with this tag, or of crawls
    /// with it, in place of the rule for all; 'forever' keeps them. A page with the tags of several
    /// rules is kept as long as one of them keeps it. The setting may be given more than once; a
    /// line replaces an earlier one for the same pages, and an empty value removes all. For the
    /// pages of a watch, give them a tag with ArchiveTags=.
    ///
    /// Pages are deleted as by archivist delete when they are due, or after the next start of the
    /// orchestrator. Before the rules delete anything after a change of them, or after a day without
    /// an orchestrator, all pages that are due are counted. If these are more than a tenth of the
    /// archive or of the pages of a rule, nothing is deleted until archivist delete
    /// --by-retention confirms it: archivist status, archivist doctor and the failed unit
    /// archivist-retention-held.service say so. In the same way the rules wait while the clock of
    /// the machine is not believed: it was set by more than a day, or is more than a month ahead of
    /// the last run, and no time server has confirmed it (NTPSynchronized of timedatectl(1)). Pages that
    /// ended meanwhile, or have a time in the future, are deleted by no rule.
    ///
    /// A rule deletes no page that archivist pin keeps, whose crawl has not ended, or whose copy to
    /// the store is not complete. archivist why says when a page will go,
    /// archivist delete --by-retention --dry-run which pages are due, also by a rule that is not
    /// yet configured, and the journal which ones were deleted. A node of a fleet ignores this
    /// setting. Defaults to none: no page is deleted.
    [Archive] Retention += retention, retention, shown_retention;
    /// Maximum size of the files of all pages, and what happens if they have more
    ///
    /// A size such as 500G is for the archive, after tag:NAME for pages with this tag or of crawls
    /// with it, and after 'user' for the crawls of each user, such as the members of the group
    /// archivist, except for users that have a quota of their own: after user:NAME, with a name or a
    /// number. All files that hooks left count, whether they are on this machine or in the store.
    /// Names are looked up when the configuration is read. If there is no such user, the quota is
    /// ignored, and the journal says so.
    ///
    /// With 'refuse' after the size, which is the default, archivist add and the checks of watches
    /// add no page while there is more; crawls that were added before continue. With 'delete', pages
    /// are deleted until there is not more: first those that were not saved, then versions of a page
    /// that has a newer one that was saved, and the newest saved versions last, in each case the
    /// oldest first. Pinned pages are kept, and those of crawls that have not ended, and whose copy to
    /// the store is not complete. archivist add and
    /// archivist why say which quota it is, and the journal which pages were deleted. The setting
    /// may be given more than once; a line replaces an earlier one for the same pages, and an empty
    /// value removes all. A node of a fleet ignores this setting. Defaults to none.
    [Archive] Quota += quotas, quota, shown_quotas;

    /// Time limit for one run of a hook whose plugin has no setting PLUGIN_TIMEOUT
    ///
    /// Hooks see it as TIMEOUT.
    [Hooks] TimeoutSec = hook_timeout, positive_span, shown_span;
    /// Maximum time that the next hook waits for the first line of output of a daemon
    ///
    /// A hook waits longer for a daemon with .daemon.bg in its name if the daemon is of the same plugin
    /// or of one that it requires: see archivist-hooks(7).
    [Hooks] ReadyTimeoutSec = ready_limit, positive_span, shown_span;
    /// Maximum time between SIGTERM to a daemon and SIGKILL to its control group
    ///
    /// A daemon gets what is left of the time limit of its plugin since its start (PLUGIN_TIMEOUT
    /// or TimeoutSec=), and 15 seconds if less is left, but never more than this. By default, the
    /// limit of the plugin decides.
    [Hooks] StopTimeoutSec = stop_limit, positive_span, shown_span;
    /// Time limit for a daemon, which is a background hook that runs until it is stopped
    [Hooks] DaemonMaxSec = daemon_limit, positive_span, shown_span;
    /// Maximum size of the standard output of a hook; a hook that writes more is stopped
    [Hooks] StdoutMax = output_limit, size, shown_size;
    /// The network that hooks run in:
    ///
    /// 'host' is the network of the machine, 'private' is a separate network for the hooks of each
    /// crawl, and 'auto' is private if the packages passt and iproute2 are installed, except for
    /// crawls that may reach the loopback interface of the machine (Reach=), which a separate
    /// network does not have.
    [Hooks] Network = network, network, NetworkMode::to_string;
    /// Addresses that hooks and checks may reach in addition to the Internet:
    ///
    /// 'public' for none, 'loopback', 'private', networks such as 10.2.0.0/16, several of these
    /// separated by blanks or commas, or 'any' for all of them.
    ///
    /// An archived page can make the browser send requests to every server that the hook reaches:
    /// by an image, a frame, a redirect, a script, or a name that resolves to the address of such a
    /// server.
    [Hooks] Reach = reach, reach, Reach::to_string;

    /// URL of the PostgreSQL database that the machines of a fleet share
    ///
    /// It is one such as postgresql://archivist@db.example/archivist, see archivist-fleet(8). A
    /// password in it is an error: the password is the credential archivist-fleet.password.
    /// archivist fleet init and archivist fleet join write this setting, and archivist fleet leave
    /// removes it. Without the package archivist-fleet, a machine with this setting starts no page.
    /// Defaults to none: the machine is in no fleet.
    [Fleet] Database = fleet_database, fleet::database, String::clone;
    /// Name of this machine in the fleet, which no other machine may have
    ///
    /// Letters, digits, dots, hyphens and underscores, 63 at most. Defaults to the host name.
    [Fleet] Name = fleet_name, fleet::name, String::clone;
    /// How long a node may work on a host without a renewal, which it tries four times in that time
    ///
    /// If a node fails, its hosts go to other nodes after this time; a node without a connection to
    /// the database stops the pages of its hosts a tenth of it earlier, at least 15 s. There is one
    /// value for the whole fleet: the longest of those that its nodes are configured for, so that
    /// no node stops pages earlier than it is configured to. A node reports its value when it
    /// connects; after a change, restart archivist-fleet.service. Takes a time span from 30s to 1d.
    /// Defaults to none: the node follows the others; while no node is configured, the value of the
    /// database stays, which is 5min in a new fleet.
    [Fleet] LeaseSec = lease, fleet::lease, shown_lease;
    /// Where every sealed snapshot is copied
    ///
    /// A directory, a directory of another host over SSH, or a bucket of S3. Defaults to none:
    /// there is no store.
    [Fleet] Store = store, location, shown;
    /// How long the files of a snapshot stay on this machine:
    ///
    /// 'always', 'never', or a time span such as 30d, counted from when the snapshot was sealed.
    ///
    /// Files are only removed when the copy was verified and the files are still the same; a copy
    /// that was verified more than a day ago is read again first. A page with the command that
    /// restores the files takes their place, next to the small picture that lists show: archivist
    /// open and a retry restore them, for at least a day.
    [Fleet] KeepLocal = keep_local, keep_local, KeepLocal::to_string;
}

/// Returns the key of this name, or `None` if it is unknown.
pub fn find(section: &str, name: &str) -> Option<&'static Key> {
    KEYS.iter().find(|key| key.section == section && key.name == name)
}

/// Returns why `[section] name=` is unknown, with a correction if possible.
pub fn explain_unknown(section: &str, name: &str) -> String {
    let sections = ["Orchestrator", "Archive", "Hooks", "Fleet", VALUES];
    if !sections.contains(&section) {
        return format!(
            "unknown section [{section}]; there are [Orchestrator], [Archive], [Hooks], [Fleet] and [Config]"
        );
    }
    if let Some(elsewhere) = KEYS.iter().find(|key| key.name == name) {
        return format!("{name}= belongs in section [{}]", elsewhere.section);
    }
    let similar = similar(name, KEYS.iter().map(|key| key.name));
    let nearest = KEYS.iter().find(|key| similar.first() == Some(&key.name));
    match nearest {
        Some(key) => format!(
            "unknown key {name}= in section [{section}]{}",
            did_you_mean(&[format!("{}= in [{}]", key.name, key.section)])
        ),
        None if is_value_name(name) => {
            format!(
                "unknown key {name}= in section [{section}]; settings of plugins belong in [Config]"
            )
        }
        None => format!("unknown key {name}= in section [{section}]; see archivist.conf(5)"),
    }
}

/// What a value means, or what is allowed.
type Read<T> = Result<T, &'static str>;

fn count(text: &str) -> Read<u32> {
    let number = text.parse().ok().filter(|n| (1..=10_000).contains(n));
    number.ok_or("a whole number from 1 to 10000")
}

fn span(text: &str) -> Read<Duration> {
    parse_span(text).ok_or(SPAN_ALLOWED)
}

fn positive_span(text: &str) -> Read<Duration> {
    let positive = "a time span longer than 0, like 30s or 5min";
    Some(span(text)?).filter(|span| !span.is_zero()).ok_or(positive)
}

fn percent(text: &str) -> Read<u32> {
    let number = text.strip_suffix('%').and_then(|number| number.parse().ok());
    number.filter(|n| (1..=100).contains(n)).ok_or("a share from 1% to 100%")
}

fn shown_percent(percent: &u32) -> String {
    format!("{percent}%")
}

fn share(text: &str) -> Read<u32> {
    match yes_or_no(text) {
        Ok(all) => Ok(if all { 100 } else { 0 }),
        Err(_) => percent(text).map_err(|_| "yes, no, or a share from 1% to 100%"),
    }
}

fn shown_share(percent: &u32) -> String {
    match percent {
        0 | 100 => shown_yes_or_no(&(*percent > 0)),
        _ => shown_percent(percent),
    }
}

fn size(text: &str) -> Read<u64> {
    parse_size(text).filter(|n| *n > 0).ok_or(SIZE_ALLOWED)
}

/// Also accepts 0.
fn size_or_none(text: &str) -> Read<u64> {
    parse_size(text).ok_or(SIZE_ALLOWED)
}

fn directory(field: &mut Vec<PathBuf>, text: &str) -> Read<()> {
    let path = PathBuf::from(text);
    if !path.is_absolute() || path.components().any(|c| c.as_os_str() == "..") {
        return Err("the absolute path of a directory, without '..'");
    }
    field.push(path);
    Ok(())
}

fn words(field: &mut Vec<String>, text: &str) -> Read<()> {
    let new = text.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    for word in new {
        let fine = |b: u8| b.is_ascii_alphanumeric() || b == b'_' || b == b'-';
        if !word.bytes().all(fine) {
            return Err(
                "names of plugins, separated by blanks or commas, like: wget title screenshot",
            );
        }
        field.push(word.to_owned());
    }
    Ok(())
}

fn yes_or_no(text: &str) -> Read<bool> {
    match text {
        "yes" | "true" | "on" | "1" => Ok(true),
        "no" | "false" | "off" | "0" => Ok(false),
        _ => Err("yes or no"),
    }
}

fn shown_yes_or_no(value: &bool) -> String {
    if *value { "yes" } else { "no" }.to_owned()
}

/// Patterns are stored as one string with a line for each.
fn patterns(field: &mut String, text: &str) -> Read<()> {
    let entries = split_commas(text).into_iter().map(str::trim);
    for entry in entries.filter(|entry| !entry.is_empty()) {
        if UrlFilter::new(entry, "").is_err() {
            return Err(
                "domains (example.com, *.example.com) and regular expressions, separated by commas",
            );
        }
        if !field.is_empty() {
            field.push('\n');
        }
        field.push_str(entry);
    }
    Ok(())
}

fn network(text: &str) -> Read<NetworkMode> {
    NetworkMode::parse(text).ok_or("auto, host or private")
}

fn reach(text: &str) -> Read<Reach> {
    Reach::parse(text).ok_or(
        "public, any, or words of loopback, private and networks like 10.2.0.0/16; link-local and metadata addresses cannot be allowed",
    )
}

fn retention(field: &mut Vec<RetentionRule>, text: &str) -> Read<()> {
    RetentionRule::parse(text)?.add_to(field);
    Ok(())
}

fn quota(field: &mut Vec<Quota>, text: &str) -> Read<()> {
    Quota::parse(text)?.add_to(field);
    Ok(())
}

fn shown_quotas(quotas: &[Quota]) -> String {
    let quotas: Vec<_> = quotas.iter().map(|quota| quota.text.as_str()).collect();
    quotas.join("\n")
}

fn shown_retention(rules: &[RetentionRule]) -> String {
    let rules: Vec<_> = rules.iter().map(|rule| rule.text.as_str()).collect();
    rules.join("\n")
}

fn http_errors(text: &str) -> Read<HttpErrors> {
    HttpErrors::parse(text).ok_or("keep, fail or retry")
}

fn location(text: &str) -> Read<Option<Location>> {
    Location::parse(text).map(Some).ok_or(LOCATION_ALLOWED)
}

fn keep_local(text: &str) -> Read<KeepLocal> {
    KeepLocal::parse(text).ok_or(KEEP_ALLOWED)
}

fn alert(text: &str) -> Read<Option<Alert>> {
    let allowed = "a unit, like notify@.service, or a command that begins with an absolute path";
    Alert::parse(text).map(Some).map_err(|_| allowed)
}

fn shown<T: ToString>(value: &Option<T>) -> String {
    value.as_ref().map(T::to_string).unwrap_or_default()
}

fn shown_span(span: &Duration) -> String {
    exact_span(*span)
}

fn shown_lease(lease: &Option<Duration>) -> String {
    lease.map(exact_span).unwrap_or_default()
}

fn shown_size(size: &u64) -> String {
    exact_size(*size)
}

fn shown_words(words: &[String]) -> String {
    words.join(" ")
}

fn shown_paths(paths: &[PathBuf]) -> String {
    let paths: Vec<_> = paths.iter().map(|p| p.display().to_string()).collect();
    paths.join("\n")
}
