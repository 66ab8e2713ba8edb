//! Checks of the machine that read files: systemd, users, disk, cgroups, user namespaces.

use super::Check;
use crate::client::linger::{enable_linger, logout_hint};
use crate::display::style;
use archivist_config::{HOOK_USERS, Scope};
use archivist_core::model::Time;
use archivist_core::plan::INODES_NEEDED;
use archivist_core::text::human_size;
use archivist_hooks::authorities;
use archivist_shared::archive;
use archivist_shared::disk::FreeSpace;
use archivist_shared::outage::{self, Outage};
use nix::unistd::{Group, Uid, User, getegid, getgroups};
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

/// Less free disk space is a warning without MinFreeSpace=, in bytes.
const SPACE_WANTED: u64 = 100 << 20;

/// Line of the loaded AppArmor profile of browsers.
const BROWSER_PROFILE: &str = "archivist-browser (unconfined)";

/// What to do about controllers that the kernel does not have.
const KERNEL_FIX: &str = "see cgroup_disable= and cgroup_no_v1= of the kernel command line";

/// The commands that give a user's service manager all controllers (systemd.resource-control(5)).
fn delegation(uid: Uid) -> String {
    format!(
        "printf '[Service]\\nDelegate=cpu io memory pids\\n' | sudo install -D --mode=644 /dev/stdin \
         /etc/systemd/system/user@.service.d/delegate.conf && sudo systemctl daemon-reload && \
         sudo systemctl restart user@{uid}.service"
    )
}

/// The checked machine; in tests, a directory with its files.
pub struct Host<'a> {
    scope: &'a Scope,
    root: PathBuf,
}

impl<'a> Host<'a> {
    pub fn of(scope: &'a Scope) -> Host<'a> {
        Host { scope, root: scope.root.clone() }
    }

    pub fn checks(&self) -> Vec<Check> {
        let mut checks = vec![self.systemd()];
        if !self.scope.user {
            checks.extend(users(self.scope));
        }
        checks.extend([
            self.clock(style::now()),
            self.data_directory(),
            self.archive(),
            self.cgroups(),
            self.user_namespaces(),
        ]);
        checks.extend(self.disks());
        checks.extend(self.run());
        checks.extend(self.journal());
        checks.extend(self.lingering());
        checks.extend(self.personas());
        checks.extend(self.authorities());
        checks
    }

    /// Returns a check for a user whose work ends with the session.
    fn lingering(&self) -> Option<Check> {
        let (what, fix) = logout_hint(self.scope)?;
        Some(Check::warn("logout", what, fix))
    }

    fn read(&self, path: &str) -> Option<String> {
        let text = fs::read_to_string(self.root.join(path)).ok()?;
        Some(text.trim().to_owned())
    }

    fn systemd(&self) -> Check {
        const NAME: &str = "systemd";
        match self.read("proc/1/comm").as_deref() {
            // sd_booted(3) looks for the directory.
            Some("systemd") if self.root.join("run/systemd/system").is_dir() => {
                Check::ok(NAME, "is PID 1")
            }
            other => Check::fail(
                NAME,
                format!("is not PID 1; PID 1 is {}", other.unwrap_or("unknown")),
                "archivist needs a machine or container booted by systemd; packaging/try makes one",
            ),
        }
    }

    fn clock(&self, now: Time) -> Check {
        const NAME: &str = "clock";
        match outage::clock(now) {
            Some(Outage { what, fix }) => Check::fail(NAME, what, fix),
            None => Check::ok(NAME, "is set"),
        }
    }

    fn data_directory(&self) -> Check {
        const NAME: &str = "data directory";
        let dir = self.scope.data_dir();
        let shown = dir.display().to_string();
        if let Some(Outage { what, fix }) = outage::data_directory(self.scope) {
            return Check::fail(NAME, what, fix);
        }
        match fs::metadata(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => Check::warn(
                NAME,
                format!("{shown} does not exist"),
                "the first 'archivist --user add' creates it",
            ),
            Err(error) => Check::warn(NAME, format!("{shown}: {error}"), "run with sudo"),
            Ok(_) => Check::ok(NAME, shown),
        }
    }

    /// Checks the directory for files that last until the next boot, if there is a problem with it.
    fn run(&self) -> Option<Check> {
        let Outage { what, fix } = outage::runtime_directory(self.scope)?;
        Some(Check::fail("runtime directory", what, fix))
    }

    /// Checks that journald listens, if systemd runs here. Units start without it, but what they print
    /// is lost.
    fn journal(&self) -> Option<Check> {
        const NAME: &str = "journal";
        let directory = self.root.join("run/systemd/journal");
        let socket = directory.join("socket");
        if !directory.is_dir() {
            return None;
        }
        let sender = UnixDatagram::unbound().ok()?;
        Some(match sender.connect(&socket) {
            Err(error) if error.kind() != ErrorKind::PermissionDenied => Check::warn(
                NAME,
                format!(
                    "journald does not listen on '{}' ({error}): messages are lost",
                    socket.display()
                ),
                "systemctl restart systemd-journald.socket systemd-journald.service",
            ),
            _ => Check::ok(NAME, "journald listens"),
        })
    }

    fn archive(&self) -> Check {
        const NAME: &str = "archive";
        let path = self.scope.data_dir().join("archive");
        match archive::problem(self.scope, &path) {
            Some(problem) if problem.is_usual_at_first(self.scope) => {
                Check::ok(NAME, format!("{} has no pages yet", path.display()))
            }
            Some(problem) => Check::fail(NAME, problem.to_string(), problem.fix()),
            None => Check::ok(NAME, path.display().to_string()),
        }
    }

    /// Checks that other users cannot read the personas; `None` without such a directory.
    fn personas(&self) -> Option<Check> {
        const NAME: &str = "personas";
        let dir = self.scope.data_dir().join("personas");
        let mode = fs::metadata(&dir).ok()?.mode() & 0o777;
        Some(match mode & 0o077 {
            0 => Check::ok(NAME, "out of reach of other users"),
            _ => Check::warn(
                NAME,
                format!("{} has mode {mode:o}: other users may read the cookies", dir.display()),
                if self.scope.user {
                    format!("chmod go= {}", dir.display())
                } else {
                    "systemd-tmpfiles --create archivist.conf".to_owned()
                },
            ),
        })
    }

    /// Checks that the browser can trust the local certificate authorities; `None` without such.
    fn authorities(&self) -> Option<Check> {
        const NAME: &str = "authorities";
        let directory = authorities::DIRECTORY;
        let local = authorities::local(&self.root.join(directory.trim_start_matches('/')));
        let count = match local.len() {
            0 => return None,
            1 => "the local authority".to_owned(),
            count => format!("the {count} local authorities"),
        };
        Some(if self.root.join("usr/bin/certutil").exists() {
            Check::ok(NAME, format!("chromium trusts {count} in {directory}"))
        } else {
            Check::warn(
                NAME,
                format!("chromium does not trust {count} in {directory}"),
                "apt install libnss3-tools",
            )
        })
    }

    /// Checks the file system of the data directory, and that of the archive if it has its own.
    fn disks(&self) -> Vec<Check> {
        let data = self.scope.data_dir();
        let archive = data.join("archive");
        let device = |path: &Path| fs::metadata(path).map(|found| found.dev()).ok();
        let of_archive = device(&archive).filter(|own| Some(*own) != device(&data));
        let mut checks = vec![self.disk(&data)];
        checks.extend(of_archive.map(|_| self.disk(&archive)));
        checks
    }

    fn disk(&self, dir: &Path) -> Check {
        const NAME: &str = "disk";
        let place = dir.ancestors().find(|path| path.is_dir()).unwrap_or(Path::new("/"));
        let Ok(free) = FreeSpace::at(place) else {
            return Check::warn(
                NAME,
                format!("failed to read the free space of {}", place.display()),
                "see: df",
            );
        };
        let what = format!("{} free in {}", human_size(free.bytes), place.display());
        let fix = "free some space, or move the data directory to a larger disk";
        let settings = archivist_config::load(self.scope).map(|(settings, _)| settings);
        let least = settings.unwrap_or_default().min_free_space;
        let place = place.display();
        match free.inodes {
            _ if free.is_read_only => Check::fail(
                NAME,
                format!("the file system of {place} is read-only: nothing is started"),
                format!("see: journalctl --dmesg --lines=20; then: mount -o remount,rw {place}"),
            ),
            Some(inodes) if inodes < INODES_NEEDED && least > 0 => Check::fail(
                NAME,
                format!(
                    "{inodes} inodes are free in {place}: with less than {INODES_NEEDED}, nothing is started"
                ),
                fix,
            ),
            _ => space(free.bytes, least, what, fix),
        }
    }

    fn cgroups(&self) -> Check {
        const NAME: &str = "cgroups";
        let Some(of_machine) = self.read("sys/fs/cgroup/cgroup.controllers") else {
            return Check::warn(
                NAME,
                "no unified cgroup hierarchy: limits and accounting do not work",
                "boot without systemd.unified_cgroup_hierarchy=0",
            );
        };
        let uid = Uid::effective();
        let controllers = if self.scope.user {
            let unit = format!("user-{uid}.slice/user@{uid}.service");
            match self.read(&format!("sys/fs/cgroup/user.slice/{unit}/cgroup.controllers")) {
                Some(controllers) => controllers,
                None => {
                    let what = "your service manager does not run, so its controllers are unknown";
                    return Check::warn(NAME, what, enable_linger(self.scope));
                }
            }
        } else {
            of_machine.clone()
        };
        let lacks = |controllers: &str| -> Vec<&str> {
            let all = ["memory", "pids", "cpu", "io"].into_iter();
            all.filter(|wanted| !controllers.split(' ').any(|it| it == *wanted)).collect()
        };
        let missing = lacks(&controllers);
        match missing.as_slice() {
            [] => Check::ok(NAME, controllers),
            // A user's manager has no io controller unless an administrator delegates it.
            ["io"] | ["cpu", "io"] if self.scope.user => Check::ok(NAME, controllers),
            some => {
                let some = some.join(", ");
                let what = format!(
                    "no cgroup controller for {some}: these limits and figures are missing"
                );
                // What the machine lacks cannot be delegated.
                if self.scope.user && lacks(&of_machine) != missing {
                    let what = format!("{what}; to get them, your service manager restarts");
                    Check::warn(NAME, what, delegation(uid))
                } else {
                    Check::warn(NAME, what, KERNEL_FIX)
                }
            }
        }
    }

    /// Chromium needs user namespaces for its sandbox, and the service manager of a user for that of
    /// hooks.
    fn user_namespaces(&self) -> Check {
        const NAME: &str = "user namespaces";
        let is = |path: &str, value: &str| self.read(path).as_deref() == Some(value);
        let off = "chromium cannot build its sandbox: screenshot, pdf and dom fail";
        if is("proc/sys/user/max_user_namespaces", "0") {
            Check::fail(NAME, off, "sysctl user.max_user_namespaces=15000")
        } else if is("proc/sys/kernel/unprivileged_userns_clone", "0") {
            Check::fail(NAME, off, "sysctl kernel.unprivileged_userns_clone=1")
        } else if !is("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1") {
            Check::ok(NAME, "available")
        } else if self.scope.user {
            Check::warn(
                NAME,
                "AppArmor restricts them: the service manager of a user starts hooks without the sandbox of files, \
                 and a browser without a profile cannot build its own",
                "archive without --user, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            )
        } else {
            self.browser_profile()
        }
    }

    /// Where AppArmor restricts user namespaces, browsers need the profile of the package.
    fn browser_profile(&self) -> Check {
        const NAME: &str = "user namespaces";
        let path = self.root.join("sys/kernel/security/apparmor/profiles");
        match fs::read_to_string(path) {
            Ok(text) if text.lines().any(|line| line == BROWSER_PROFILE) => {
                Check::ok(NAME, "restricted by AppArmor, and permitted for browsers")
            }
            Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Check::warn(
                NAME,
                "AppArmor restricts them: only root can see whether the profile archivist-browser is loaded",
                "run with sudo",
            ),
            _ => Check::warn(
                NAME,
                "AppArmor restricts them: a chromium without a profile cannot build its sandbox",
                "systemctl restart archivist-apparmor.service, or sysctl kernel.apparmor_restrict_unprivileged_userns=0",
            ),
        }
    }
}

fn users(scope: &Scope) -> Vec<Check> {
    const NAME: &str = "users";
    let hooks = (0..=HOOK_USERS).filter_map(|number| scope.hook_user(number));
    let missing: Vec<_> = std::iter::once("archivist".to_owned())
        .chain(hooks)
        .chain(scope.index_user())
        .filter(|name| !matches!(User::from_name(name), Ok(Some(_))))
        .collect();
    let mut checks = vec![if missing.is_empty() {
        Check::ok(NAME, "archivist and the users of hooks exist")
    } else {
        Check::fail(
            NAME,
            format!("user {} does not exist", missing.join(", ")),
            "systemd-sysusers archivist.conf",
        )
    }];
    if let (false, Ok(Some(group))) = (Uid::effective().is_root(), Group::from_name("archivist")) {
        let groups = getgroups().unwrap_or_default();
        let member = getegid() == group.gid || groups.contains(&group.gid);
        checks.push(if member {
            Check::ok("access", "you are in group archivist")
        } else {
            Check::fail(
                "access",
                "you are not in group archivist",
                "sudo adduser $USER archivist, and log in again",
            )
        });
    }
    checks
}

/// Returns the check of this many free bytes. Below MinFreeSpace=, nothing is started; 0 is none.
fn space(free: u64, least: u64, what: String, fix: &str) -> Check {
    const NAME: &str = "disk";
    let wanted = match least {
        0 => SPACE_WANTED,
        least => least.saturating_mul(2),
    };
    if free < least {
        let what = format!("{what}: with less than MinFreeSpace=, nothing is started");
        Check::fail(NAME, what, format!("{fix}, or lower MinFreeSpace="))
    } else if free < wanted {
        Check::warn(NAME, what, fix)
    } else {
        Check::ok(NAME, what)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Verdict;
    use super::*;
    use archivist_plugin::files::remove::remove_tree;
    use std::os::unix::fs::PermissionsExt;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    #[test]
    fn browser_trusts_local_authorities_with_certutil_alone() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let host = Host::of(&scope);
        assert!(host.authorities().is_none());
        write(root.path(), "usr/local/share/ca-certificates/x.crt", "");
        let without = host.authorities().unwrap();
        assert_eq!(without.verdict(), Verdict::Warn);
        assert!(without.what.starts_with("chromium does not trust the local authority"));
        write(root.path(), "usr/bin/certutil", "");
        assert_eq!(host.authorities().unwrap().verdict(), Verdict::Ok);
    }

    #[test]
    fn controllers_that_a_user_lacks_are_delegated_unless_the_machine_has_none() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope { user: true, ..Scope::system(root.path()) };
        let host = Host::of(&scope);
        let machine = |names: &str| write(root.path(), "sys/fs/cgroup/cgroup.controllers", names);
        machine("cpuset cpu io memory pids\n");
        assert!(host.cgroups().what.starts_with("your service manager does not run"));
        assert!(host.cgroups().fix().unwrap().contains("loginctl enable-linger"));

        let uid = Uid::effective();
        let path = format!(
            "sys/fs/cgroup/user.slice/user-{uid}.slice/user@{uid}.service/cgroup.controllers"
        );
        write(root.path(), &path, "cpu memory pids\n");
        assert_eq!(host.cgroups().verdict(), Verdict::Ok);
        write(root.path(), &path, "pids\n");
        let fix = host.cgroups().fix().unwrap().to_owned();
        assert!(fix.contains("Delegate=cpu io memory pids"), "{fix}");
        assert!(fix.contains("sudo install"), "{fix}");
        machine("pids\n");
        assert_eq!(host.cgroups().fix(), Some(KERNEL_FIX));
    }

    #[test]
    fn checks_of_a_fake_root() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let host = Host::of(&scope);
        assert_eq!(host.systemd().verdict(), Verdict::Fail);
        assert_eq!(host.cgroups().verdict(), Verdict::Warn);
        assert_eq!(host.data_directory().verdict(), Verdict::Fail);
        assert_eq!(host.clock(Time(0)).verdict(), Verdict::Fail);
        assert_eq!(host.clock(Time(1_900_000_000_000)).verdict(), Verdict::Ok);
        assert_eq!(host.journal(), None);
        fs::create_dir_all(root.path().join("run/systemd/journal")).unwrap();
        assert_eq!(host.journal().unwrap().verdict(), Verdict::Warn);
        assert_eq!(host.user_namespaces().verdict(), Verdict::Ok);

        write(root.path(), "proc/1/comm", "systemd\n");
        fs::create_dir_all(root.path().join("run/systemd/system")).unwrap();
        write(root.path(), "sys/fs/cgroup/cgroup.controllers", "cpuset cpu io memory pids\n");
        assert_eq!(host.systemd().verdict(), Verdict::Ok);
        assert_eq!(host.cgroups().verdict(), Verdict::Ok);

        write(root.path(), "sys/fs/cgroup/cgroup.controllers", "cpu io pids\n");
        assert!(host.cgroups().what.starts_with("no cgroup controller for memory:"));
        assert_eq!(host.cgroups().fix(), Some(KERNEL_FIX));
        write(root.path(), "proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1\n");
        let unprofiled = host.user_namespaces();
        assert_eq!(unprofiled.verdict(), Verdict::Warn);
        assert!(unprofiled.fix().unwrap().contains("archivist-apparmor.service"));
        let profiles = "sys/kernel/security/apparmor/profiles";
        write(root.path(), profiles, "chrome (unconfined)\narchivist-browser (unconfined)\n");
        assert_eq!(host.user_namespaces().verdict(), Verdict::Ok);
        let mut own = Scope::system(root.path());
        own.user = true;
        let warning = Host::of(&own).user_namespaces();
        assert!(warning.what.contains("without the sandbox of files"));
        write(root.path(), "proc/sys/user/max_user_namespaces", "0\n");
        assert_eq!(host.user_namespaces().verdict(), Verdict::Fail);

        assert_eq!(host.personas(), None);
        let personas = root.path().join("var/lib/archivist/personas");
        fs::create_dir_all(&personas).unwrap();
        for (mode, verdict) in [(0o2750, Verdict::Warn), (0o2700, Verdict::Ok)] {
            fs::set_permissions(&personas, fs::Permissions::from_mode(mode)).unwrap();
            assert_eq!(host.personas().unwrap().verdict(), verdict, "{mode:o}");
        }
        remove_tree(&root.path().join("var/lib/archivist")).unwrap();

        write(root.path(), "var/lib/archivist", "not a directory");
        assert_eq!(host.data_directory().verdict(), Verdict::Fail);
    }

    #[test]
    fn free_space_is_judged_by_the_setting() {
        let verdict =
            |free: u64, least: u64| space(free << 20, least << 20, "x".into(), "y").verdict();
        assert_eq!(verdict(622, 20), Verdict::Ok);
        assert_eq!(verdict(30, 20), Verdict::Warn);
        assert_eq!(verdict(10, 20), Verdict::Fail);
        assert_eq!(verdict(1500, 1024), Verdict::Warn);
        assert_eq!(verdict(99, 0), Verdict::Warn);
        assert_eq!(verdict(101, 0), Verdict::Ok);
    }
}
