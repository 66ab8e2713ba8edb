//! The scope: the machine's archivist, a user's, or a further instance of either. A scope is a
//! value that answers everything that differs between them.

use super::Settings;
use archivist_core::fleet::FLEET_USER;
use archivist_core::unit::UnitKind;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// First words of installed units and programs, which an instance cannot have as its name: its units would
/// be mistaken for those of the first instance. Nor can it have the words of [`UnitKind`].
const TAKEN: [&str; 17] = [
    "apparmor",
    "backup",
    "fleet",
    "generator",
    "import",
    "metrics",
    "network",
    "orchestrator",
    "pool",
    "reach",
    "replay",
    "retention",
    "retry",
    "run",
    "sonic",
    "unhealthy",
    "watch",
];

/// Number of users for hooks of crawls: that many concurrent crawls have their own user
/// (sysusers.d/archivist.conf).
pub const HOOK_USERS: u32 = 16;
/// User of hooks outside crawls.
const HOOK_USER: &str = "archivist-hook";
/// User for hooks whose data belong to the archive.
const INDEX_USER: &str = "archivist-index";

pub const INSTANCE_ALLOWED: &str = "a lower-case letter followed by lower-case letters, digits and '_' (32 at most), and no word \
     that follows 'archivist-' in the names of units, such as crawl or hook";

/// Name of the database in the data directory.
pub const DATABASE: &str = "archivist.sqlite3";

/// The directories of a user (XDG Base Directory Specification).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserDirs {
    /// `$XDG_CONFIG_HOME`
    pub config: PathBuf,
    /// `$XDG_DATA_HOME`
    pub data: PathBuf,
    /// `$XDG_RUNTIME_DIR`
    pub runtime: PathBuf,
}

impl UserDirs {
    /// Reads the directories through `env`. Relative paths are ignored, as the specification
    /// requires.
    pub fn from_env(env: impl Fn(&str) -> Option<OsString>) -> UserDirs {
        let home = env("HOME").map(PathBuf::from).unwrap_or_else(|| "/".into());
        let dir = |name, fallback: &str| {
            env(name)
                .map(PathBuf::from)
                .filter(|path| path.is_absolute())
                .unwrap_or_else(|| home.join(fallback))
        };
        UserDirs {
            config: dir("XDG_CONFIG_HOME", ".config"),
            data: dir("XDG_DATA_HOME", ".local/share"),
            runtime: dir("XDG_RUNTIME_DIR", ".cache"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scope {
    /// Use the calling user's service manager and session bus instead of the machine's.
    pub user: bool,
    /// Name of the instance (`--instance`); `None` for the default one.
    pub instance: Option<String>,
    /// `/`, or another directory in tests.
    pub root: PathBuf,
    /// Only used in the user scope.
    pub dirs: UserDirs,
}

/// Returns whether an instance can have this name ([`INSTANCE_ALLOWED`]). The name becomes part of
/// unit names, where '-' would make a slice, and of the bus name.
pub fn is_instance_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
        && !TAKEN.contains(&name)
        && UnitKind::parse(name).is_none()
}

impl Scope {
    /// Returns the machine's first instance, with files below `root`.
    pub fn system(root: impl Into<PathBuf>) -> Scope {
        Scope { user: false, instance: None, root: root.into(), dirs: UserDirs::default() }
    }

    /// Returns the scope that `--user` and `--instance` select on the real machine.
    pub fn from_env(
        user: bool,
        instance: Option<String>,
        env: impl Fn(&str) -> Option<OsString>,
    ) -> Scope {
        Scope { user, instance, root: "/".into(), dirs: UserDirs::from_env(env) }
    }

    /// Returns the options of commands in messages, each with a blank: `--user --instance NAME `.
    pub fn options(&self) -> String {
        let user = if self.user { "--user " } else { "" };
        let instance = self.instance.iter().map(|name| format!("--instance {name} "));
        user.to_owned() + &instance.collect::<String>()
    }

    /// Returns `archivist` or `archivist-NAME`, the prefix of unit names, file names and the data
    /// directory.
    pub fn unit_prefix(&self) -> String {
        match &self.instance {
            Some(name) => format!("archivist-{name}"),
            None => "archivist".to_owned(),
        }
    }

    /// Returns the user with this number for hooks; 0 is the user of hooks outside crawls. `None`
    /// in the user scope, where everything runs as that user.
    pub fn hook_user(&self, number: u32) -> Option<String> {
        match number {
            _ if self.user => None,
            0 => Some(HOOK_USER.to_owned()),
            number => Some(format!("{HOOK_USER}-{number}")),
        }
    }

    /// Returns the users whose processes log about crawls and pages: the service manager and the
    /// orchestrator (root), the fleet service, workers, hooks and checks. Fields of the journal that a sender chooses are
    /// believed from these only. Empty in the user scope, where all of them are the same user.
    pub fn senders(&self) -> Vec<String> {
        if self.user {
            return Vec::new();
        }
        let hooks = (0..=HOOK_USERS).filter_map(|number| self.hook_user(number));
        let own = ["root", "archivist", FLEET_USER].map(str::to_owned).into_iter();
        own.chain(hooks).chain(self.index_user()).collect()
    }

    /// Returns the user for hooks of plugins whose data belong to the archive. `None` in the user
    /// scope.
    pub fn index_user(&self) -> Option<String> {
        (!self.user).then(|| INDEX_USER.to_owned())
    }

    /// `org.archivist1`, or `org.archivist1.NAME`.
    pub fn bus_name(&self) -> String {
        match &self.instance {
            Some(name) => format!("org.archivist1.{name}"),
            None => "org.archivist1".to_owned(),
        }
    }

    pub fn orchestrator_unit(&self) -> String {
        format!("{}-orchestrator.service", self.unit_prefix())
    }

    pub fn data_dir(&self) -> PathBuf {
        let base = if self.user { self.dirs.data.clone() } else { "/var/lib".into() };
        self.rooted(base.join(self.unit_prefix()))
    }

    /// Returns the path of the database.
    pub fn database(&self) -> PathBuf {
        self.data_dir().join(DATABASE)
    }

    /// Returns the directory for files that last until the next boot.
    pub fn runtime_dir(&self) -> PathBuf {
        self.rooted(if self.user {
            self.dirs.runtime.join("archivist")
        } else {
            "/run/archivist".into()
        })
    }

    /// Returns the directories of configuration, strongest last.
    pub fn config_dirs(&self) -> Vec<PathBuf> {
        if self.user {
            return vec![self.rooted(self.dirs.config.join("archivist"))];
        }
        ["/usr/lib/archivist", "/run/archivist", "/etc/archivist"]
            .map(|dir| self.rooted(dir))
            .to_vec()
    }

    /// Returns the directories with declarations of pools and watches, strongest last. A user's may
    /// also end with the session.
    pub fn declaration_dirs(&self) -> Vec<PathBuf> {
        let mut dirs = self.config_dirs();
        if self.user {
            dirs.insert(0, self.rooted(self.dirs.runtime.join("archivist")));
        }
        dirs
    }

    /// `archivist.conf`, or `archivist-NAME.conf`; its drop-ins are in the directory of that name
    /// with `.d`.
    pub fn config_name(&self) -> String {
        format!("{}.conf", self.unit_prefix())
    }

    /// Returns the directories with plugins in search order.
    pub fn plugin_roots(&self, settings: &Settings) -> Vec<PathBuf> {
        let mut roots = vec![
            PathBuf::from("/usr/share/archivist/plugins"),
            PathBuf::from("/etc/archivist/plugins"),
        ];
        if self.user {
            roots.push(self.dirs.data.join("archivist/plugins"));
        }
        roots.extend(settings.plugin_path.iter().cloned());
        roots.into_iter().map(|dir| self.rooted(dir)).collect()
    }

    pub fn rooted(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &'static [(&str, &str)]) -> impl Fn(&str) -> Option<OsString> {
        move |name| {
            let found = pairs.iter().find(|(key, _)| *key == name)?;
            Some(found.1.into())
        }
    }

    #[test]
    fn every_user_of_hooks_is_made() {
        let sysusers = include_str!("../../packaging/tree/usr/lib/sysusers.d/archivist.conf");
        let made: Vec<String> = sysusers
            .lines()
            .filter_map(|line| line.strip_prefix("u archivist-hook"))
            .filter_map(|rest| rest.split_whitespace().next().map(str::to_owned))
            .map(|end| match end.as_str() {
                "-" => HOOK_USER.to_owned(),
                end => format!("{HOOK_USER}{end}"),
            })
            .collect();
        let system = Scope::system("/");
        let wanted = (0..=HOOK_USERS).filter_map(|number| system.hook_user(number));
        assert_eq!(made, wanted.collect::<Vec<_>>());
        assert_eq!(Scope { user: true, ..system }.hook_user(3), None);
    }

    #[test]
    fn one_code_path_for_every_scope() {
        let system = Scope::system("/");
        assert_eq!(system.data_dir(), Path::new("/var/lib/archivist"));
        assert_eq!(system.bus_name(), "org.archivist1");
        assert_eq!(system.config_name(), "archivist.conf");

        let news = Scope { instance: Some("news".into()), root: "/tmp/r".into(), ..system };
        assert_eq!(news.data_dir(), Path::new("/tmp/r/var/lib/archivist-news"));
        assert_eq!(news.bus_name(), "org.archivist1.news");
        assert_eq!(news.orchestrator_unit(), "archivist-news-orchestrator.service");

        let user =
            Scope::from_env(true, None, env(&[("HOME", "/home/u"), ("XDG_DATA_HOME", "rel")]));
        assert_eq!(user.data_dir(), Path::new("/home/u/.local/share/archivist"));
        assert_eq!(user.config_dirs(), [Path::new("/home/u/.config/archivist")]);
        let roots = user.plugin_roots(&Settings::default());
        assert_eq!(roots[2], Path::new("/home/u/.local/share/archivist/plugins"));
    }

    #[test]
    fn names_of_instances() {
        for good in ["news", "a", "n2_x"] {
            assert!(is_instance_name(good), "{good}");
        }
        for bad in ["", "News", "a-b", "2x", "hook", "a.b", "../x", "ä"] {
            assert!(!is_instance_name(bad), "{bad}");
        }
    }

    #[test]
    fn no_instance_has_the_first_word_of_an_installed_unit() {
        let units = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../units");
        let files = ["system", "user"].map(|scope| std::fs::read_dir(units.join(scope)).unwrap());
        let mut count = 0;
        for file in files.into_iter().flatten() {
            let name = file.unwrap().file_name().into_string().unwrap();
            let Some(rest) = name.strip_prefix("archivist-") else {
                continue;
            };
            let word = rest.split(['-', '@', '.']).next().unwrap_or_default();
            assert!(!is_instance_name(word), "{name}");
            count += 1;
        }
        assert!(count > 40, "{count} unit files");
    }
}
