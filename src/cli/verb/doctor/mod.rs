//! `archivist doctor`: checks this machine from systemd up to the plugins, with a fix for each
//! problem.

mod check;
mod fleet;
mod health;
mod host;
mod lighthouse;
mod secrets;
mod service;
mod trial;
mod watches;

use crate::client::exit::{Exit, Failure};
use crate::client::hint::in_scope;
use crate::display::style::{self, Style, Tone};
use crate::machine::browser;
use archivist_config as config;
use archivist_config::Scope;
use archivist_core::model::AddressKind;
use archivist_core::model::web::reach::nameservers;
use archivist_hooks::{CONSENT_RULES, DOCUMENT_READERS, DocumentReader, has_consent_rules};
use archivist_plugin::Values;
use archivist_plugin::programs::binary::HOOK_PATH;
use check::{Check, Verdict};
use clap::Args;
use host::Host;
use std::path::Path;

/// Check this machine and print how to fix what is missing
///
/// It checks systemd, users, clock, data directory, archive, disks, journal, cgroups, user
/// namespaces, configuration, the programs that read documents, bus, orchestrator, plugins, the timers of watches and pools, and how
/// many hooks fail, on this machine and for each web host, and names pages in the archive that the
/// database does not know. For about three seconds, it records a page
/// of its own with the browser, and replays it without the server: root does so in a unit with the
/// sandbox of a replay, --user in one of the user's service manager. Free space is judged by MinFreeSpace= of
/// archivist.conf(5): below it nothing is started, and up to twice as much is a warning. The exit
/// status is 1 if archiving cannot work.
#[derive(Args)]
pub struct DoctorArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

pub async fn run(args: DoctorArgs, scope: &Scope) -> Result<Exit, Failure> {
    let mut checks = Host::of(scope).checks();
    checks.extend(configuration(scope));
    checks.extend(secrets::checks(scope));
    checks.extend(browser::settings(scope, false).ok().and_then(|values| consent(&values)));
    checks.extend(documents(scope));
    let (service, trial) = tokio::join!(service::checks(scope), trial::checks(scope));
    checks.extend(service);
    checks.extend(fleet::checks(scope).await);
    checks.extend(trial);
    let checks = checks.into_iter();
    let checks: Vec<Check> =
        checks.map(|check| check.with_fix(|fix| in_scope(fix, scope))).collect();
    if args.json {
        style::print_value(&checks)?;
    } else {
        style::print(&listed(&checks, &Style::of_stdout()))?;
    }
    if checks.iter().any(|check| check.verdict() == Verdict::Fail) {
        Ok(Exit::Failed)
    } else {
        Ok(Exit::Done)
    }
}

fn configuration(scope: &Scope) -> Vec<Check> {
    const NAME: &str = "configuration";
    let fix = "see archivist.conf(5) and 'archivist config'";
    match config::load(scope) {
        Err(error) => error
            .problems
            .into_iter()
            .map(|problem| Check::fail(NAME, problem.text(), fix))
            .collect(),
        Ok((settings, warnings)) => {
            let mut checks: Vec<_> = warnings
                .into_iter()
                .map(|warning| Check::warn(NAME, warning.to_string(), fix))
                .collect();
            checks.extend(unreached_resolvers(scope));
            if let Some((what, fix)) =
                settings.network.obstacle(config::network::lack(scope).as_ref())
            {
                checks.push(Check::fail(NAME, what, fix));
            }
            if let Some((what, fix)) = settings.network.missing_device(scope) {
                checks.push(Check::fail(NAME, what, fix));
            }
            if checks.is_empty() {
                checks.push(Check::ok(NAME, "is fine"));
            }
            checks
        }
    }
}

/// Returns a check if no release of autoconsent is where the settings of the browser name one: a
/// package can be built without.
fn consent(settings: &Values) -> Option<Check> {
    let directory = settings.get(CONSENT_RULES)?.trim();
    let is_named = !directory.is_empty() && directory != "off";
    (is_named && !has_consent_rules(Path::new(directory))).then(|| {
        Check::warn(
            "consent",
            format!(
                "consent walls are known by our own phrases alone: '{directory}' has no release of \
                 autoconsent"
            ),
            format!("see {CONSENT_RULES} in archivist-hooks(7)"),
        )
    })
}

/// Returns a check for each program of Debian that is missing and reads documents for the plugin text.
fn documents(scope: &Scope) -> Vec<Check> {
    let is_missing = |program: &str| {
        let mut places = HOOK_PATH.split(':').map(Path::new);
        !places.any(|place| scope.rooted(place.join(program)).is_file())
    };
    let missing = DOCUMENT_READERS.iter().filter(|reader| is_missing(reader.program));
    let warn = |reader: &DocumentReader| {
        let DocumentReader { program, package, documents } = reader;
        Check::warn(
            "documents",
            format!(
                "{program} is not installed: {documents} have no text, and are not found by it"
            ),
            format!("apt install {package}; for older pages: archivist retry ID --hook text"),
        )
    };
    missing.map(warn).collect()
}

/// Returns a check for each name server that hooks cannot reach, as in some clouds.
fn unreached_resolvers(scope: &Scope) -> Vec<Check> {
    let text = std::fs::read(scope.rooted("/etc/resolv.conf")).unwrap_or_default();
    let servers = nameservers(&String::from_utf8_lossy(&text)).into_iter();
    let never = servers.filter(|ip| AddressKind::of(*ip) == AddressKind::Never && !scope.user);
    let warn = |ip| {
        Check::warn(
            "resolver",
            format!("{ip} of /etc/resolv.conf is an address that hooks cannot reach"),
            "apt install systemd-resolved, or see Reach= in archivist.conf(5)",
        )
    };
    never.map(warn).collect()
}

fn shown(verdict: Verdict) -> (&'static str, Tone) {
    match verdict {
        Verdict::Ok => ("ok", Tone::Good),
        Verdict::Skipped => ("skip", Tone::Plain),
        Verdict::Warn => ("warn", Tone::Busy),
        Verdict::Fail => ("FAIL", Tone::Bad),
    }
}

fn listed(checks: &[Check], style: &Style) -> String {
    let widest = checks.iter().map(|check| check.name.len()).max().unwrap_or(0);
    let mut out = String::new();
    for check in checks {
        let (word, tone) = shown(check.verdict());
        let word = style.paint(&format!("{word:<4}"), tone);
        out.push_str(&format!("{word}  {}", check.lines(widest)));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use archivist_core::model::Time;

    #[test]
    fn problems_are_printed_with_a_fix() {
        let checks = [
            Check::ok("systemd", "257 is PID 1"),
            Check::warn("chromium", "is not installed", "apt install chromium"),
            Check::fail("bus", "cannot be reached", "systemctl status dbus.socket"),
        ];
        assert_eq!(
            listed(&checks, &Style::plain(Time(0))),
            "ok    systemd   257 is PID 1\n\
             warn  chromium  is not installed\n\
             \u{20}               → apt install chromium\n\
             FAIL  bus       cannot be reached\n\
             \u{20}               → systemctl status dbus.socket\n"
        );
    }

    #[test]
    fn build_without_rules_for_consent_is_named() {
        let root = tempfile::tempdir().unwrap();
        let directory = root.path().to_str().unwrap();
        let check =
            |value: &str| consent(&Values::from([(CONSENT_RULES.to_owned(), value.to_owned())]));
        let missing = check(directory).unwrap();
        assert_eq!(missing.verdict(), Verdict::Warn);
        assert!(missing.what.starts_with("consent walls are known by our own phrases alone"));
        assert_eq!((check("off"), consent(&Values::new())), (None, None));
        for file in ["dist/autoconsent.cjs.js", "rules/compact-rules.json"] {
            assert!(check(directory).is_some());
            let path = root.path().join(file);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(check(directory), None);
    }

    #[test]
    fn missing_readers_of_documents_are_named_with_their_package() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let texts = || -> Vec<String> { documents(&scope).iter().map(|c| c.lines(1)).collect() };
        assert_eq!(texts().len(), 2);
        assert!(texts()[0].contains("pdftotext is not installed: PDFs have no text"));
        assert!(texts()[0].contains("apt install poppler-utils"));
        let programs = root.path().join("usr/bin");
        std::fs::create_dir_all(&programs).unwrap();
        std::fs::write(programs.join("pdftotext"), "").unwrap();
        assert!(texts().len() == 1 && texts()[0].contains("apt install pandoc"));
    }

    #[test]
    fn the_configuration_is_read() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        assert_eq!(configuration(&scope)[0].verdict(), Verdict::Ok);
        let dir = root.path().join("etc/archivist");
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join("archivist.conf"), "[Hooks]\nTimeout=3\n").unwrap();
        let checks = configuration(&scope);
        assert_eq!(checks[0].verdict(), Verdict::Warn);
        assert!(checks[0].what.contains("archivist.conf:2: unknown key Timeout="));
    }
}
