//! Walls that cover a page or lock its scrolling: pages of `tests/web` in a real browser.

use crate::fixture::{Session, Snapshot, TREE, WebServer, has};
use crate::pictures::pixels;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

/// The release of autoconsent that the package contains.
static RULES: LazyLock<String> = LazyLock::new(|| TREE.join("autoconsent").display().to_string());

/// A browser with one tab, and the server of its pages.
struct Bed {
    session: Session,
    web: WebServer,
    snap: Snapshot,
    /// `CHROMIUM_CONSENT_RULES=` of the pages.
    rules: &'static str,
    /// `CHROMIUM_CONSENT_HOSTS=` of the pages.
    hosts: &'static str,
}

/// What was saved of a page.
struct Saved {
    note: String,
    html: String,
    height: u32,
    red: usize,
    blue: usize,
    /// Text of the PDF; empty if it cannot be read on this machine.
    print: String,
    /// What can be searched.
    text: String,
}

impl Bed {
    fn start() -> Option<Bed> {
        if !has(&["chromium"]) {
            return None;
        }
        let snap = Snapshot::new();
        Some(Bed {
            session: Session::shared(&snap, &[]),
            web: WebServer::start("53-consent-walls"),
            snap,
            rules: &RULES,
            hosts: "localhost",
        })
    }

    /// Opens a page. Returns the remarks about its walls.
    fn note(&mut self, path: &str, mode: &str) -> String {
        let settings = [
            ("CHROMIUM_CONSENT", mode),
            ("CHROMIUM_CONSENT_RULES", self.rules),
            ("CHROMIUM_CONSENT_HOSTS", self.hosts),
        ];
        let url = self.web.url(path);
        let text = self.session.open(&self.snap, &url, &settings);
        assert!(text.starts_with("page loaded http=200"), "{path}: {text}");
        let note = &self.snap.json("chromium/navigation.json")["note"];
        let notes = note.as_str().unwrap_or_default().split("; ");
        // A slow machine may leave other remarks.
        let of_walls = ["closed ", "hid ", "rejected ", "removed ", "tried ", "unlocked "];
        let is_of_wall = |note: &&str| of_walls.iter().any(|start| note.starts_with(start));
        let notes: Vec<_> = notes.filter(is_of_wall).collect();
        notes.join("; ")
    }

    fn html(&self, path: &str) -> String {
        self.snap.run("dom", &self.web.url(path), &[]);
        String::from_utf8(self.snap.read("dom/output.html")).unwrap()
    }

    fn save(&mut self, path: &str, mode: &str) -> Saved {
        let note = self.note(path, mode);
        let html = self.html(path);
        let url = self.web.url(path);
        self.snap.run("screenshot", &url, &[]).assert(0, "succeeded", "screenshot.png");
        let (_, height, pixels) = pixels(&self.snap.read("screenshot/screenshot.png"));
        let count = |color| pixels.iter().filter(|pixel| **pixel == color).count();
        self.snap.run("pdf", &url, &[]).assert(0, "succeeded", "output.pdf");
        let print = Command::new("pdftotext")
            .args([self.snap.file("pdf/output.pdf").as_os_str(), "-".as_ref()])
            .output();
        self.snap.run("text", &url, &[]).assert(0, "succeeded", "text.txt");
        Saved {
            note,
            html,
            text: String::from_utf8(self.snap.read("text/text.txt")).unwrap(),
            height,
            red: count([255, 0, 0]),
            blue: count([0, 0, 255]),
            print: print.map_or_else(
                |_| String::new(),
                |done| String::from_utf8_lossy(&done.stdout).into_owned(),
            ),
        }
    }
}

/// Collects what is wrong with a page without its walls.
fn judge(path: &str, saved: &Saved, note: &str, choice: &str, wrong: &mut Vec<String>) {
    let mut expect = |is_right: bool, what: String| {
        if !is_right {
            wrong.push(format!("{path}: {what}"));
        }
    };
    expect(saved.note == note, format!("note '{}'", saved.note));
    let chosen = format!("data-choice=\"{choice}\"");
    expect(saved.html.contains(&chosen) != choice.is_empty(), format!("choice is not '{choice}'"));
    let others = saved.html.contains("data-choice=\"accepted\"");
    expect(!others, "consent was given".to_owned());
    expect(saved.red >= 4000, format!("{} red pixels", saved.red));
    expect(saved.blue == 0, format!("{} blue pixels", saved.blue));
    expect(saved.height > 2500, format!("{} pixels high", saved.height));
    expect(!saved.text.contains("WALLWORD"), "wall in the text".to_owned());
    expect(saved.text.contains("THE END"), "no end in the text".to_owned());
    if has(&["pdftotext"]) {
        let print = &saved.print;
        expect(!print.contains("WALLWORD"), "wall in the PDF".to_owned());
        for word in ["CONTENT 1 ", "CONTENT 80 ", "THE END"] {
            expect(print.contains(word), format!("no '{word}' in the PDF"));
        }
    }
}

#[test]
fn walls_are_rejected_or_hidden() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let mut wrong = Vec::new();
    for (path, note, choice) in [
        ("/fixed", "closed a consent wall with 'Reject all'", "rejected"),
        ("/accept-only", "hid a consent wall; unlocked scrolling", ""),
        (
            "/html-lock",
            "closed a consent wall with 'Nur notwendige Cookies'; unlocked scrolling",
            "rejected",
        ),
        (
            "/body-fixed",
            "closed a consent wall with 'Continuer sans accepter'; unlocked scrolling",
            "rejected",
        ),
        ("/wrapper", "closed a consent wall with '拒否する'; unlocked scrolling", "rejected"),
        ("/stubborn", "hid a consent wall; unlocked scrolling", ""),
        ("/shadow", "closed a consent wall with 'Reject all'", "rejected"),
        ("/closed-shadow", "hid an overlay; unlocked scrolling", ""),
        ("/dialog", "closed a consent wall with 'Decline'", "rejected"),
        ("/frame", "closed a consent wall with 'Reject all'", "rejected"),
        ("/inert", "closed a consent wall with 'I do not accept'", "rejected"),
        ("/late", "closed a consent wall with 'Reject all'", "rejected"),
        ("/newsletter", "closed a newsletter wall with '×'", "closed"),
        ("/scroll", "closed a newsletter wall with '×'", "closed"),
        ("/onetrust", "closed a consent wall (OneTrust) with 'Nope'", "rejected"),
        (
            "/cookiebot",
            "closed a consent wall (Cookiebot) with 'Use necessary cookies only'",
            "rejected",
        ),
        ("/quantcast", "closed a consent wall (Quantcast) with 'DISAGREE'", "rejected"),
        ("/blur", "hid an overlay; removed a blur", ""),
        ("/bar", "closed a consent wall with 'Only necessary cookies'", "rejected"),
        ("/reload", "closed a consent wall with 'Reject all'", "rejected"),
        ("/hides", "closed a consent wall with 'Reject all'", "rejected"),
        (
            "/two",
            "closed a consent wall with 'Reject all'; closed a newsletter wall with '×'",
            "rejected",
        ),
    ] {
        let saved = bed.save(path, "reject");
        judge(path, &saved, note, choice, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn walls_are_only_hidden_or_stay_as_the_setting_says() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let mut wrong = Vec::new();
    for path in ["/fixed", "/shadow", "/dialog", "/frame"] {
        let saved = bed.save(path, "hide");
        let is_locked = path == "/fixed" || path == "/frame";
        let note =
            if is_locked { "hid a consent wall; unlocked scrolling" } else { "hid a consent wall" };
        judge(path, &saved, note, "", &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let saved = bed.save("/fixed", "no");
    assert_eq!(saved.note, "");
    assert!(saved.blue > 1_000_000, "{}", saved.blue);
}

/// A page chooses what its frames show: a button of another site may do anything there.
#[test]
fn frames_of_other_sites_are_hidden_without_a_click() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    bed.hosts = "";
    let mut wrong = Vec::new();
    for (path, note) in [
        ("/frame", "hid a consent wall; unlocked scrolling"),
        ("/rules/sourcepoint", "hid a consent wall (Sourcepoint)"),
    ] {
        let saved = bed.save(path, "reject");
        judge(path, &saved, note, "", &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Pages without a wall are saved as they are, also if they have something that looks like one.
#[test]
fn pages_without_walls_are_not_changed() {
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let mut wrong = Vec::new();
    for path in [
        "/keep/header",
        "/keep/dialog",
        "/keep/video",
        "/keep/login",
        "/keep/app",
        "/keep/small-app",
        "/keep/requests",
        "/keep/box",
        "/keep/checkout",
        "/keep/article",
        "/keep/chat",
        "/keep/hero",
        "/keep/sidebar",
        "/keep/player",
        "/keep/framed",
        "/keep/sticky",
        "/keep/plain",
        // A consent manager that asks nothing.
        "/keep/decided",
    ] {
        let [changed, own] = ["reject", "no"].map(|mode| (bed.note(path, mode), bed.html(path)));
        if !changed.0.is_empty() || changed != own {
            wrong.push(format!("{path}: note '{}'\n{}", changed.0, changed.1));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Consent managers in a language that our own rules do not know, whose buttons are not those that
/// they know: settings that must be opened, an object of the page under a content security policy,
/// a frame of another site, and a box that covers nothing.
#[test]
fn walls_without_a_known_button_are_rejected_by_the_rules() {
    if !Path::new(&*RULES).exists() {
        println!("skipped: autoconsent is not there; tests/run and packaging/build-deb fetch it");
        return;
    }
    let Some(mut bed) = Bed::start() else {
        return;
    };
    let mut wrong = Vec::new();
    for (path, rule, hidden) in [
        ("/rules/onetrust", "Onetrust", "hid a consent wall (OneTrust)"),
        ("/rules/cookiebot", "Cybotcookiebot", "hid a consent wall (Cookiebot)"),
        ("/rules/sourcepoint", "Sourcepoint-frame", "hid a consent wall (Sourcepoint)"),
        ("/rules/truyo", "truyo", ""),
    ] {
        bed.rules = &RULES;
        let saved = bed.save(path, "reject");
        let note = format!("closed a consent wall ({rule})");
        judge(path, &saved, &note, "rejected", &mut wrong);
        if saved.html.contains("WALLWORD") || saved.html.contains("autoconsent") {
            wrong.push(format!("{path}: the wall, or a trace of the rules, is left"));
        }
        for (rules, mode) in [("off", "reject"), (&*RULES, "hide")] {
            bed.rules = rules;
            let (note, html) = (bed.note(path, mode), bed.html(path));
            if note != hidden || html.contains("data-choice") {
                wrong.push(format!("{path}, rules {rules}, {mode}: note '{note}'"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A package whose hash is not that of the lock is not unpacked.
#[test]
fn package_with_another_hash_is_not_fetched() {
    let tree = tempfile::tempdir().unwrap();
    let fetch = |lock: &str| {
        let script = r#"
            mkdir -p packaging bin package/{dist,lib,rules}
            touch package/{LICENSE,package.json,build.sh,tsconfig.json,dist/autoconsent.cjs.js}
            [[ -e fake.tgz ]] || tar -czf fake.tgz package
            printf '#!/bin/sh\n[ "$5" = name@1 ] && cp "%s/fake.tgz" "$4"\n' "$PWD" >bin/npm
            chmod +x bin/npm
            hash=sha512-$(openssl dgst -sha512 -binary fake.tgz | base64 --wrap=0)
            echo "name 1 ${2:-$hash}" >packaging/autoconsent.lock
            SOURCE=$PWD PACKAGING=$PWD/packaging PATH=$PWD/bin:$PATH
            source "$1/packaging/lib/report.sh"
            source "$1/packaging/lib/autoconsent.sh"
            fetch_autoconsent"#;
        let root = env!("CARGO_MANIFEST_DIR");
        let mut command = Command::new("bash");
        command.args(["-euo", "pipefail", "-c", script, "fetch", root, lock]);
        let done = command.current_dir(tree.path()).output().unwrap();
        (done.status.success(), String::from_utf8(done.stderr).unwrap())
    };
    let fetched = tree.path().join("autoconsent/dist/autoconsent.cjs.js");
    let (is_fetched, said) = fetch("sha512-AAAA");
    assert!(!is_fetched && !fetched.exists(), "{said}");
    assert!(said.contains("but the lock has sha512-AAAA"), "{said}");
    assert!(said.contains("consent walls are known by our own phrases alone"), "{said}");
    let (is_fetched, said) = fetch("");
    assert!(is_fetched && fetched.exists(), "{said}");
    // Another lock, another package: what is there is of the lock before.
    assert!(!fetch("sha512-AAAA").0);
}
