//! Plugins for tests, created without a directory, and directories as hostile programs make them.

use nix::fcntl::{OFlag, openat};
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::stat::{Mode, mkdirat};
use std::fs::File;
use std::io::Write;
use std::path::Path;

use serde_json::Value;

use crate::catalogue::name::HookName;
use crate::catalogue::schema::Schema;
use crate::catalogue::{Catalogue, Hook, Plugin};

/// Returns a hook with this file name. Panics if it is not the name of a hook.
pub fn hook(plugin: &str, file: &str) -> Hook {
    let name = HookName::parse(file).unwrap_or_else(|| panic!("{file} is not a hook"));
    Hook {
        plugin: plugin.to_owned(),
        id: file.rsplit_once('.').map_or(file, |(id, _)| id).to_owned(),
        file: Path::new("/plugins").join(plugin).join(file),
        unit_part: name.name.clone(),
        name,
        interpreter: None,
    }
}

/// Creates a plugin with this `config.json` and these hook files.
pub fn plugin(name: &str, config: Value, files: &[&str]) -> Plugin {
    Plugin {
        name: name.to_owned(),
        dir: Path::new("/plugins").join(name),
        schema: Schema::parse(Path::new("config.json"), &config.to_string()).unwrap(),
        hooks: files.iter().map(|file| hook(name, file)).collect(),
        loose: false,
    }
}

/// Returns a catalogue of these plugins, without problems.
pub fn catalogue(plugins: impl Into<Vec<Plugin>>) -> Catalogue {
    let mut plugins = plugins.into();
    plugins.sort_by(|a: &Plugin, b| a.name.cmp(&b.name));
    Catalogue { plugins, ..Catalogue::default() }
}

/// Creates directories named `name` below each other in `top`, at any depth, with the file `file` in the last.
pub fn deep(top: &Path, levels: usize, name: &str) {
    let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
    let mut here = nix::fcntl::open(top, flags, Mode::empty()).unwrap();
    for _ in 0..levels {
        mkdirat(&here, name, Mode::S_IRWXU | Mode::S_IRWXG).unwrap();
        here = openat(&here, name, flags, Mode::empty()).unwrap();
    }
    let flags = OFlag::O_CREAT | OFlag::O_WRONLY | OFlag::O_CLOEXEC;
    let mode = Mode::S_IRUSR | Mode::S_IWUSR;
    let file = openat(&here, "file", flags, mode).unwrap();
    File::from(file).write_all(b"content").unwrap();
}

/// The depths and names of directories that no program may fail at; with the long names, paths are longer
/// than PATH_MAX.
pub fn depths() -> impl Iterator<Item = (usize, String)> {
    let levels = [10, 300, 3_000, 30_000];
    let names = ["d".to_owned(), "n".repeat(255)];
    levels.into_iter().flat_map(move |levels| names.clone().map(|name| (levels, name)))
}

/// Address space of [`poor`] in bytes.
const MEMORY: u64 = 512 << 20;
/// File descriptors of it, fewer than a unit has.
const DESCRIPTORS: u64 = 256;
/// Variable that is set in it.
const POOR: &str = "ARCHIVIST_TEST_IS_POOR";

/// Runs the body of the test `name` of `module` (`module_path!()`) in a process of its own with little memory and
/// few file descriptors, which the other tests of this process do not share.
pub fn poor(module: &str, name: &str, body: impl FnOnce()) {
    if std::env::var_os(POOR).is_some() {
        setrlimit(Resource::RLIMIT_AS, MEMORY, MEMORY).unwrap();
        setrlimit(Resource::RLIMIT_NOFILE, DESCRIPTORS, DESCRIPTORS).unwrap();
        return body();
    }
    let (_, module) = module.split_once("::").unwrap();
    let mut test = std::process::Command::new(std::env::current_exe().unwrap());
    test.args(["--exact", "--nocapture", &format!("{module}::{name}")]);
    let output = test.env(POOR, "1").output().unwrap();
    let (stdout, stderr) = (output.stdout, output.stderr);
    let text = [stdout, stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{}", text.join("\n"));
    assert!(text[0].contains("1 passed"), "{}", text.join("\n"));
}
