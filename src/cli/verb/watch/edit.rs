//! `archivist watch add` and `remove`: write or delete a watch file and start or stop its timers.

use super::queue;
use crate::client::exit::{Exit, Failure};
use crate::client::server::Server;
use crate::client::timers;
use crate::display::style;
use archivist_config::declare::watch::{KEYS, Watch, When};
use archivist_config::declare::{Declaration, Kind, url_file};
use archivist_config::{Scope, ini};
use archivist_core::model::CheckKind;
use archivist_core::text::{Problem, clean};
use archivist_generator::watch::timer_name;
use archivist_plugin::files::whole::{Survives, Whole};
use clap::Args;
use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Write NAME.watch, start its timers, and queue a first check of each kind
///
/// The file in /etc/archivist, or with --user in ~/.config/archivist, is written atomically, and systemd is
/// reloaded.
#[derive(Args)]
pub struct WatchAddArgs {
    /// Name of the watch
    #[arg(value_name = "NAME", value_parser = super::name)]
    name: String,
    /// URLs of the sites
    #[arg(value_name = "URL", required_unless_present = "url_file")]
    urls: Vec<String>,
    /// Watch the URLs in FILE too, a list as for archivist add; it is read at every check
    ///
    /// The exit status is 3 if something in that file is not watched.
    #[arg(long, value_name = "FILE")]
    url_file: Option<PathBuf>,
    /// When to check whether a site answers: 'every 5min', a calendar or cron expression, or 'no'
    #[arg(long, value_name = "WHEN")]
    status: Option<String>,
    /// When to measure the sites with Lighthouse
    #[arg(long, value_name = "WHEN")]
    lighthouse: Option<String>,
    /// When to crawl the sites for broken links
    #[arg(long, value_name = "WHEN")]
    crawl: Option<String>,
    /// When to archive the sites
    #[arg(long, value_name = "WHEN")]
    archive: Option<String>,
    /// Unit or command to start when a site is down
    #[arg(long, value_name = "WHAT")]
    on_down: Option<String>,
    /// Unit or command to start when the site is up again
    #[arg(long, value_name = "WHAT")]
    on_recovery: Option<String>,
    /// Set any other key of archivist.watch(5); may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Replace an existing file of this name
    #[arg(long)]
    replace: bool,
}

/// Stop the timers of a watch and delete its file
///
/// Results are kept for their normal retention time.
#[derive(Args)]
pub struct RemoveArgs {
    /// Name of the watch
    #[arg(value_name = "NAME", value_parser = super::name)]
    name: String,
}

fn directory(scope: &Scope) -> PathBuf {
    scope.config_dirs().pop().unwrap_or_default()
}

pub async fn add(args: WatchAddArgs, scope: &Scope) -> Result<Exit, Failure> {
    let text = text(&args)?;
    let path = directory(scope).join(format!("{}.watch", args.name));
    let watch = read(&args.name, &text, &path)?;
    let before = fs::read_to_string(&path).ok();
    let mode = mode(&watch, &path);
    write(&path, &text, mode, args.replace)?;
    let systemd = timers::connect(scope).await?;
    let kinds = watch.kinds();
    // A timer that runs when its file vanishes fails, and the system is "degraded".
    let ended = CheckKind::SCHEDULED.into_iter().filter(|kind| !kinds.contains(kind));
    timers::stop(&systemd, &args.name, ended).await?;
    if let Some(kind) = timers::start(&systemd, &args.name, &kinds).await? {
        // Only systemd can judge a calendar expression. On an error, restore the old file:
        let replaced = match before {
            Some(text) => {
                write(&path, &text, mode, true)?;
                read(&args.name, &text, &path).map_or_else(|_| Vec::new(), |watch| watch.kinds())
            }
            None => {
                delete(&path)?;
                Vec::new()
            }
        };
        timers::start(&systemd, &args.name, &replaced).await?;
        let When::Calendar(expression) = watch.schedule(kind).when else {
            let timer = timer_name(&args.name, kind);
            return Err(Failure::failed(format!("systemd failed to load {timer}")));
        };
        return Err(Failure::usage(format!(
            "{kind}: '{expression}' is neither 'every SPAN' nor a calendar expression of systemd.time(7)"
        )));
    }
    style::print(&format!("{}\n", path.display()))?;
    if before.as_ref() != Some(&text) && !kinds.is_empty() {
        // The first elapse of a timer may be a week away.
        queue_first(&args.name, scope).await;
    }
    for sentence in watch.left_out() {
        eprintln!("note: {}", clean(&sentence));
    }
    Ok(complain(&watch))
}

/// Queues each kind of check once. A failure is only printed: the timers queue them, too.
async fn queue_first(name: &str, scope: &Scope) {
    let asked = async { queue::ask(&Server::reach(scope).await?, name, &[]).await }.await;
    if let Err(failure) = asked {
        eprintln!("note: the first checks wait for their timers: {}", failure.first_line());
    }
}

/// Prints what the file of URLs has that is not watched. The file is read at every check, so it may
/// be corrected or written later.
fn complain(watch: &Watch) -> Exit {
    let problems = match watch.url_file.as_deref().map(url_file::read) {
        None => Vec::new(),
        Some(Ok(found)) if found.urls.is_empty() && watch.urls.is_empty() => {
            let mut problems: Vec<_> = found.refused.iter().map(Problem::text).collect();
            problems.push(format!("watch '{}' has no URL", watch.name));
            problems
        }
        Some(Ok(found)) => found.refused.iter().map(Problem::text).collect(),
        Some(Err(why)) => vec![why],
    };
    for problem in &problems {
        eprintln!("{}", clean(problem));
    }
    if problems.is_empty() { Exit::Done } else { Exit::Partly }
}

fn text(args: &WatchAddArgs) -> Result<String, Failure> {
    let mut lines = vec!["[Watch]".to_owned()];
    let mut line = |key: &str, value: &str| {
        if value.chars().any(char::is_control) || value.ends_with('\\') {
            let value = value.escape_default();
            let what = format!("{key}= cannot be '{value}': it must be one line");
            return Err(Failure::usage(what));
        }
        lines.push(format!("{key}={value}"));
        Ok(())
    };
    for url in &args.urls {
        line("URL", url)?;
    }
    let url_file = args
        .url_file
        .as_ref()
        .map(std::path::absolute)
        .transpose()
        .map_err(|error| Failure::usage(format!("--url-file: {error}")))?;
    let url_file = url_file.map(|path| path.to_string_lossy().into_owned());
    for (key, value) in [
        ("URLFile", &url_file),
        ("Status", &args.status),
        ("Lighthouse", &args.lighthouse),
        ("Crawl", &args.crawl),
        ("Archive", &args.archive),
        ("OnDown", &args.on_down),
        ("OnRecovery", &args.on_recovery),
    ] {
        if let Some(value) = value {
            line(key, value)?;
        }
    }
    for set in &args.set {
        match set.split_once('=') {
            Some((key, value)) if KEYS.contains(&key) => line(key, value)?,
            _ => {
                let known = KEYS.join(", ");
                return Err(Failure::usage(format!(
                    "'{set}' is not KEY=VALUE with one of {known}"
                )));
            }
        }
    }
    Ok(lines.join("\n") + "\n")
}

/// Reads the watch as the generator will; an error means that nothing is written.
fn read(name: &str, text: &str, path: &Path) -> Result<Watch, Failure> {
    let parsed = ini::parse(text, path);
    let (watch, problems) = Watch::of(&Declaration {
        kind: Kind::Watch,
        name: name.to_owned(),
        path: path.to_owned(),
        entries: parsed.entries,
        malformed: parsed.malformed,
    });
    match problems.into_iter().next() {
        None => Ok(watch),
        Some(problem) => Err(Failure::usage(problem.what)),
    }
}

/// Returns the permissions of the file: for its owner alone if it has a secret, or if those of the
/// file that it replaces are such.
fn mode(watch: &Watch, path: &Path) -> u32 {
    let is_closed = fs::metadata(path).is_ok_and(|before| before.mode() & 0o044 == 0);
    if watch.has_secret() || is_closed { 0o600 } else { 0o644 }
}

/// Writes the whole file in one step.
fn write(path: &Path, text: &str, mode: u32, replace: bool) -> Result<(), Failure> {
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::AlreadyExists => {
            let what = format!("'{}' exists already; --replace overwrites it", path.display());
            Failure::usage(what)
        }
        _ => Failure::failed(format!("failed to write '{}': {error}", path.display())),
    };
    let parent = path.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(parent).map_err(failed)?;
    let written = Whole::at(path, mode).and_then(|whole| {
        whole.file().write_all(text.as_bytes())?;
        if replace { whole.place(Survives::PowerCut) } else { whole.place_new(Survives::PowerCut) }
    });
    written.map_err(failed)
}

pub async fn remove(args: RemoveArgs, scope: &Scope) -> Result<Exit, Failure> {
    let path = directory(scope).join(format!("{}.watch", args.name));
    if !path.exists() {
        return Err(Failure::failed(format!(
            "found no watch '{}' in '{}'",
            args.name,
            directory(scope).display()
        )));
    }
    // Stop the timers and the started units first: they would look for the deleted watch.
    let systemd = timers::connect(scope).await?;
    timers::stop(&systemd, &args.name, CheckKind::SCHEDULED).await?;
    delete(&path)?;
    timers::start(&systemd, &args.name, &[]).await?;
    Ok(Exit::Done)
}

fn delete(path: &Path) -> Result<(), Failure> {
    fs::remove_file(path)
        .map_err(|error| Failure::failed(format!("failed to delete '{}': {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args() -> WatchAddArgs {
        WatchAddArgs {
            name: "site".into(),
            urls: vec!["https://example.org".into()],
            url_file: None,
            status: Some("every 5min".into()),
            lighthouse: Some("no".into()),
            crawl: None,
            archive: None,
            on_down: None,
            on_recovery: None,
            set: vec!["Retention=7d".into()],
            replace: false,
        }
    }

    #[test]
    fn a_file_that_can_be_read_again() {
        let text = text(&args()).unwrap();
        let want =
            "[Watch]\nURL=https://example.org\nStatus=every 5min\nLighthouse=no\nRetention=7d\n";
        assert_eq!(text, want);
        let watch = read("site", &text, Path::new("x")).unwrap();
        assert_eq!(watch.kinds(), [CheckKind::Status, CheckKind::Crawl]);
    }

    #[test]
    fn urls_of_a_file_that_are_refused_are_reported() {
        let top = tempfile::tempdir().unwrap();
        let file = top.path().join("sites.txt");
        let of = |list: &str| {
            fs::write(&file, list).unwrap();
            let with_file =
                WatchAddArgs { urls: Vec::new(), url_file: Some(file.clone()), ..args() };
            let text = text(&with_file).unwrap();
            complain(&read("site", &text, Path::new("x")).unwrap())
        };
        assert_eq!(of("http://a.test/\n"), Exit::Done);
        assert_eq!(of("http://a.test/\na.test/b\n"), Exit::Partly);
        assert_eq!(of("# nothing\n"), Exit::Partly);
        assert_eq!(of("<html>"), Exit::Partly);
    }

    #[test]
    fn no_argument_becomes_a_second_line() {
        let evil =
            WatchAddArgs { on_down: Some("/bin/true\n[Service]\nUser=root".into()), ..args() };
        assert!(text(&evil).is_err());
        let unknown = WatchAddArgs { set: vec!["Exec=/bin/true".into()], ..args() };
        assert!(text(&unknown).is_err());
    }

    #[test]
    fn a_file_is_not_overwritten_by_accident() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("a/site.watch");
        write(&path, "one", 0o644, false).unwrap();
        assert!(write(&path, "two", 0o644, false).is_err());
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
        write(&path, "two", 0o600, true).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(fs::read_dir(top.path().join("a")).unwrap().count(), 1);
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_with_a_secret_is_for_its_owner() {
        let top = tempfile::tempdir().unwrap();
        let path = top.path().join("site.watch");
        let mode_of = |set: &str| {
            let with = WatchAddArgs { set: vec![set.to_owned()], ..args() };
            mode(&read("site", &text(&with).unwrap(), &path).unwrap(), &path)
        };
        assert_eq!(mode_of("Header=Accept-Language: de"), 0o644);
        assert_eq!(mode_of("Header=Authorization: Bearer 1"), 0o600);
        assert_eq!(mode_of("SecretHeader=X-Shop: 1"), 0o600);
        // What an administrator has closed stays closed.
        write(&path, "", 0o600, false).unwrap();
        assert_eq!(mode_of("Header=Accept-Language: de"), 0o600);
    }
}
