//! `archivist persona import`: makes a persona from files of a user.
//!
//! Root makes the machine's personas from files in the homes of users. No symbolic link is
//! followed: it could lead to a file that only root can read.

use super::audience;
use super::failed;
use super::settings;
use crate::client::exit::{Exit, Failure};
use crate::display::style;
use archivist_config::Scope;
use archivist_core::model::cookies::CookieFile;
use archivist_core::model::{Audience, COOKIES, PersonaName, PersonaSettings};
use archivist_core::text::clean;
use archivist_hooks::persona::{
    COPY_BOUNDS, IN_USE, PROFILE, copy_opened, open_below, open_without_links,
};
use archivist_plugin::files::remove::remove_tree;
use archivist_plugin::files::whole::{self, Survives};
use clap::Args;
use nix::sys::stat::{Mode, umask};
use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Create a persona from a browser profile, a file of cookies, settings, or several of these
///
/// If DIR or FILE, or a directory on the way to it, is a symbolic link, the command refuses it
/// (except with --user), because root would follow the link to files that its owner cannot read.
#[derive(Args)]
pub(super) struct ImportArgs {
    /// User data directory of a Chrome or Chromium that is not running
    ///
    /// Symbolic links in the directory are left out, and more than 4 GiB is refused. A Chromium
    /// that keeps its secrets in the keyring of the desktop writes cookies that only the desktop
    /// can decrypt: start it with '--password-store=basic' before you log in, or export the
    /// cookies.
    #[arg(long, value_name = "DIR", required_unless_present_any = ["cookies", "settings"])]
    profile: Option<PathBuf>,
    /// File with cookies: Netscape format, JSON of a browser extension, or a Cookie: header
    ///
    /// In the Netscape format, blanks may separate the fields, too. JSON may also be that of
    /// Playwright, Puppeteer or Selenium. A line or element that is not a cookie is refused with
    /// the reason, and the exit status is 3. The command prints how many cookies it took for how
    /// many hosts, and how many of them have expired.
    #[arg(long, value_name = "FILE")]
    cookies: Option<PathBuf>,
    /// Host of the cookies in a Cookie: header, unless the file has the Host: header as well
    ///
    /// With a dot before HOST, subdomains get the cookies, too.
    #[arg(long, value_name = "HOST", requires = "cookies")]
    host: Option<String>,
    /// Give the persona a setting, as with archivist persona set; may be given more than once
    #[arg(long = "set", value_name = "KEY=VALUE", value_parser = settings::assignment)]
    settings: Vec<(String, String)>,
    /// Users and @GROUPs whose crawls may use the persona, in addition to root
    ///
    /// Without it, the list has the user who called sudo(8), if any.
    #[arg(long, value_name = "USER", value_delimiter = ',')]
    allow: Vec<String>,
    /// Name for --persona; crawls without --persona use Default
    #[arg(value_name = "NAME")]
    name: PersonaName,
}

/// Longest file of cookies, in bytes.
const COOKIES_MAX: u64 = 64 << 20;
/// Refused cookies that are printed individually.
const REFUSED_SHOWN: usize = 20;

/// The persona appears in one step: it is renamed when it is complete.
pub(super) fn run(args: &ImportArgs, all: &Path, scope: &Scope) -> Result<Exit, Failure> {
    let audience = match (scope.user, args.allow.is_empty()) {
        (true, false) => {
            let refused = "personas of a user's own archive belong to that user only";
            return Err(Failure::usage(refused));
        }
        (_, false) => audience::parse(&args.allow)?,
        (_, true) => audience::usual(std::env::var("SUDO_UID").ok().as_deref()),
    };
    if !args.settings.is_empty() {
        settings::validate(&args.settings, scope)?;
    }
    umask(if scope.user {
        Mode::from_bits_truncate(0o077)
    } else {
        Mode::from_bits_truncate(0o027)
    });
    make(all, scope)?;
    let (name, path) = (&args.name, all.join(args.name.as_str()));
    if path.symlink_metadata().is_ok() {
        return Err(Failure::usage(format!(
            "persona '{name}' exists; to replace it, first run: archivist persona remove {name}"
        )));
    }
    let new = all.join(format!(".{name}.new"));
    remove_tree(&new).map_err(|error| failed("remove", &new, &error))?;
    fs::create_dir(&new).map_err(|error| failed("make", &new, &error))?;
    let done = fill(args, &new, scope).and_then(|cookies| {
        allow(all, name, &audience, scope)?;
        // Replaces the settings of an earlier persona, too.
        let settings = args.settings.iter().cloned().collect();
        settings::write(all, name, &PersonaSettings(settings))?;
        fs::rename(&new, &path).map_err(|error| failed("make", &path, &error))?;
        Ok(cookies)
    });
    if done.is_err() {
        let _ = remove_tree(&new);
    }
    let cookies = done?;
    let users = if scope.user {
        String::new()
    } else {
        format!(
            "users: {}; to change that: archivist persona allow {name} USER\n",
            audience::words(&audience).join(", ")
        )
    };
    let with = match &cookies {
        Some(file) => format!(" with {}", file.summary(style::now().0 / 1000)),
        None => String::new(),
    };
    style::say(&format!("persona {name} is ready{with}: archivist add --persona {name}\n{users}"))?;
    Ok(match cookies {
        Some(file) if !file.refused.is_empty() => Exit::Partly,
        _ => Exit::Done,
    })
}

/// The list is written before the persona, and replaces the list of an earlier one.
fn allow(
    all: &Path,
    name: &PersonaName,
    audience: &Audience,
    scope: &Scope,
) -> Result<(), Failure> {
    if scope.user { Ok(()) } else { audience::write(all, name, audience) }
}

/// Creates the directory of all personas, which only root can enter. Its content belongs to the
/// group of hooks, for the one hook into which systemd binds a persona.
fn make(all: &Path, scope: &Scope) -> Result<(), Failure> {
    if all.is_dir() {
        return Ok(());
    }
    let to_failure = |error| failed("make", all, &error);
    let mut builder = DirBuilder::new();
    builder.recursive(scope.user).mode(0o700);
    builder.create(all).map_err(to_failure)?;
    if !scope.user {
        let group = fs::metadata(all.with_file_name("archive")).map_err(to_failure)?;
        std::os::unix::fs::chown(all, None, Some(group.gid())).map_err(to_failure)?;
        fs::set_permissions(all, Permissions::from_mode(0o2700)).map_err(to_failure)?;
    }
    Ok(())
}

/// Copies the profile and the cookies, and returns what the file of cookies has.
fn fill(args: &ImportArgs, new: &Path, scope: &Scope) -> Result<Option<CookieFile>, Failure> {
    if let Some(profile) = &args.profile {
        let top = open(profile, scope)?;
        // A symbolic link is not followed; anything else with that name is refused too.
        let lock = open_below(&top, Path::new(IN_USE));
        if !lock.is_err_and(|error| error.kind() == io::ErrorKind::NotFound) {
            return Err(Failure::failed(format!(
                "a browser uses '{}' (it has a {IN_USE}); close it first",
                profile.display()
            )));
        }
        copy_opened(&top, profile, &new.join(PROFILE), COPY_BOUNDS)
            .map_err(|error| Failure::failed(error.to_string()))?;
    }
    let Some(cookies) = &args.cookies else {
        return Ok(None);
    };
    let text = text_of(cookies, scope)?;
    let unusable = |why: &str| {
        let shown = cookies.display();
        Failure::usage(format!("failed to read the cookies in '{shown}': {why}"))
    };
    let file = CookieFile::read(&text, args.host.as_deref()).map_err(|why| unusable(&why))?;
    for refused in file.refused.iter().take(REFUSED_SHOWN) {
        eprintln!("'{}': {}", cookies.display(), clean(&refused.to_string()));
    }
    match file.refused.len().saturating_sub(REFUSED_SHOWN) {
        0 => {}
        more => eprintln!("'{}': {more} more refused", cookies.display()),
    }
    if file.cookies.is_empty() {
        return Err(unusable("it has no cookie that can be used"));
    }
    let to = new.join(COOKIES);
    whole::replace(&to, file.to_netscape().as_bytes(), 0o666, Survives::PowerCut)
        .map_err(|error| failed("write", &to, &error))?;
    Ok(Some(file))
}

fn text_of(cookies: &Path, scope: &Scope) -> Result<Vec<u8>, Failure> {
    let unreadable = |error| failed("read", cookies, &error);
    let file = open(cookies, scope)?;
    let is_file = file.metadata().map_err(unreadable)?.is_file();
    let mut text = Vec::new();
    if is_file {
        let mut bounded = file.take(COOKIES_MAX + 1);
        bounded.read_to_end(&mut text).map_err(unreadable)?;
    }
    if is_file && text.len() as u64 <= COOKIES_MAX {
        Ok(text)
    } else {
        Err(Failure::failed(format!("'{}' is not a file of cookies", cookies.display())))
    }
}

/// Opens a path that the user named; in a user's own archive, symbolic links are followed.
fn open(path: &Path, scope: &Scope) -> Result<File, Failure> {
    let opened = if scope.user {
        fs::canonicalize(path).and_then(|path| open_without_links(&path))
    } else {
        open_without_links(path)
    };
    opened.map_err(|error| failed("read", path, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn scope(top: &Path) -> Scope {
        let mut scope = Scope::system(top);
        scope.user = true;
        scope.dirs.data = "/data".into();
        scope
    }

    #[test]
    fn a_profile_in_use_and_half_an_import_leave_nothing() {
        let top = tempfile::tempdir().unwrap();
        let (scope, profile) = (scope(top.path()), top.path().join("profile"));
        let all = scope.data_dir().join("personas");
        fs::create_dir_all(profile.join("Default")).unwrap();
        fs::write(profile.join("Default/Cookies"), "c").unwrap();
        let args = |cookies: Option<&str>| ImportArgs {
            profile: Some(profile.clone()),
            cookies: cookies.map(|name| top.path().join(name)),
            host: None,
            settings: vec![("USER_AGENT".to_owned(), "me".to_owned())],
            allow: Vec::new(),
            name: "work".parse().unwrap(),
        };
        symlink("host-1", profile.join(IN_USE)).unwrap();
        assert!(run(&args(None), &all, &scope).is_err());
        fs::remove_file(profile.join(IN_USE)).unwrap();
        assert!(run(&args(Some("missing")), &all, &scope).is_err());
        let left = || -> Vec<_> {
            let entries = fs::read_dir(&all).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        assert!(left().is_empty());

        fs::write(top.path().join("cookies"), "k").unwrap();
        let unusable = run(&args(Some("cookies")), &all, &scope).unwrap_err();
        assert!(unusable.message().ends_with("no cookie that can be used"));
        assert!(left().is_empty());

        let file = "\u{feff}a.test FALSE / FALSE 0 k v\r\nbroken\r\n";
        fs::write(top.path().join("cookies"), file).unwrap();
        let partly = run(&args(Some("cookies")), &all, &scope).unwrap();
        assert_eq!(partly, Exit::Partly, "one line is refused");
        let read = |name: &str| fs::read_to_string(all.join("work").join(name)).unwrap();
        assert_eq!(read("chrome_profile/Default/Cookies"), "c");
        assert_eq!(
            read("cookies.txt"),
            "# Netscape HTTP Cookie File\na.test\tFALSE\t/\tFALSE\t0\tk\tv\n"
        );
        assert_eq!(read("../.work.settings"), "USER_AGENT=me\n");
        assert!(run(&args(None), &all, &scope).is_err(), "it is there");
    }

    #[test]
    fn root_follows_no_link_of_users() {
        let top = tempfile::tempdir().unwrap();
        let at = |name: &str| top.path().canonicalize().unwrap().join(name);
        fs::create_dir_all(at("home/profile")).unwrap();
        fs::write(at("secret"), "s").unwrap();
        symlink(at("secret"), at("home/cookies")).unwrap();
        symlink(at("home"), at("way")).unwrap();
        nix::unistd::mkfifo(&at("home/pipe"), Mode::S_IRWXU).unwrap();
        let machine = Scope::system(top.path());
        let why = |path: &str, scope: &Scope| match text_of(&at(path), scope) {
            Ok(text) => String::from_utf8(text).unwrap(),
            Err(failure) => failure.message().to_owned(),
        };
        assert_eq!(why("secret", &machine), "s");
        assert!(why("home/cookies", &machine).contains("symbolic link"));
        assert!(why("home/pipe", &machine).contains("not a file of cookies"));
        assert!(why("home", &machine).contains("not a file of cookies"));
        assert_eq!(why("home/cookies", &scope(top.path())), "s");
        assert!(open(&at("way/profile"), &machine).is_err());
        assert!(open(&at("home/profile"), &machine).is_ok());
    }
}
