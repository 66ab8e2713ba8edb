//! Tests of loading plugins from real directories.

use super::*;
use std::os::unix::fs::{PermissionsExt, symlink};

struct Tree(tempfile::TempDir);

impl Tree {
    fn new() -> Tree {
        let tree = Tree(tempfile::tempdir().unwrap());
        chmod(tree.0.path(), 0o755);
        tree
    }

    /// Writes a file with safe permissions of its parent directories.
    fn put(&self, path: &str, mode: u32, text: &str) -> PathBuf {
        let path = self.0.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        chmod(&path, mode);
        let own = self.0.path();
        path.ancestors().skip(1).take_while(|dir| *dir != own).for_each(|dir| chmod(dir, 0o755));
        path
    }

    fn load(&self, roots: &[&str]) -> Catalogue {
        let roots: Vec<_> = roots.iter().map(|root| self.0.path().join(root)).collect();
        Catalogue::load(&roots, Trust::User(nix::unistd::geteuid().as_raw()))
    }
}

fn chmod(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn ids(plugin: &Plugin) -> Vec<&str> {
    plugin.hooks.iter().map(|hook| hook.id.as_str()).collect()
}

#[test]
fn plugins_are_found_and_hooks_are_ordered() {
    let tree = Tree::new();
    tree.put("r/chrome/on_Snapshot__30_chrome_navigate.js", 0o755, "");
    tree.put("r/chrome/on_Snapshot__9_early.js", 0o755, "");
    tree.put("r/chrome/on_Snapshot__10_chrome_tab.daemon.bg.js", 0o755, "");
    tree.put("r/chrome/chrome_utils.js", 0o755, "");
    tree.put("r/chrome/config.json", 0o644, r#"{"required_plugins": ["puppeteer"]}"#);
    tree.put("r/.hidden/on_Snapshot__01_x.py", 0o755, "");
    tree.put("r/__pycache__/on_Snapshot__01_x.py", 0o755, "");
    let found = tree.load(&["r", "missing"]);
    assert_eq!(found.problems, []);
    let [chrome] = &found.plugins[..] else { panic!("{found:?}") };
    assert_eq!(chrome.schema.required_plugins, ["puppeteer"]);
    let wanted = [
        "on_Snapshot__9_early",
        "on_Snapshot__10_chrome_tab.daemon.bg",
        "on_Snapshot__30_chrome_navigate",
    ];
    assert_eq!(ids(chrome), wanted);
    assert_eq!(chrome.hooks[1].unit_part, "chrome_tab");
    assert!(chrome.hooks[1].file.is_absolute());
}

#[test]
fn older_plugin_lists_its_programs_in_a_file() {
    let tree = Tree::new();
    tree.put("r/old/on_Snapshot__10_old.py", 0o755, "");
    let config = r#"{"required_binaries": [{"name": "wget", "binproviders": "env"}]}"#;
    tree.put("r/old/config.json", 0o644, config);
    let listed = "{\"type\": \"Binary\", \"name\": \"wget\", \"binproviders\": \"apt\"}\n{\"name\": \"tool\"}\n?\n";
    tree.put("r/old/binaries.jsonl", 0o644, listed);
    let found = tree.load(&["r"]);
    let needs: Vec<_> = found.plugins[0]
        .schema
        .required_binaries
        .iter()
        .map(|need| (&*need.name, need.providers.len()))
        .collect();
    assert_eq!(needs, [("wget", 1), ("tool", 0)]);
    assert!(found.problems[0].what.starts_with("1 lines"), "{found:?}");
}

#[test]
fn older_hooks_need_no_shebang() {
    let tree = Tree::new();
    tree.put("r/old/on_Crawl__10_a.sh", 0o755, "echo\n");
    tree.put("r/old/on_Crawl__20_b.sh", 0o755, "#!/bin/sh\n");
    tree.put("r/old/on_Crawl__30_c", 0o755, "\x7fELF");
    tree.put("r/old/on_Crawl__40_d.rb", 0o755, "puts\n");
    let found = tree.load(&["r"]);
    let with = found.plugins[0].hooks.iter().map(|hook| hook.interpreter);
    assert_eq!(with.collect::<Vec<_>>(), [Some("bash"), None, None, None]);
}

#[test]
fn older_hooks_need_no_execute_permission() {
    let tree = Tree::new();
    tree.put("r/old/on_Crawl__10_a.sh", 0o644, "");
    tree.put("r/old/on_Snapshot__10_b.py", 0o644, "");
    tree.put("r/old/on_Snapshot__20_c.js", 0o644, "");
    tree.put("r/old/on_Snapshot__30_d.rb", 0o644, "");
    tree.put("r/old/on_CrawlSetup__40_e.py", 0o644, "");
    let found = tree.load(&["r"]);
    let with: Vec<_> = found.plugins[0].hooks.iter().map(|h| h.interpreter.unwrap()).collect();
    assert_eq!(with, ["bash", "python3", "node"]);
    let refused: Vec<_> = found.problems.iter().map(|p| p.path.file_name().unwrap()).collect();
    assert_eq!(refused, ["on_CrawlSetup__40_e.py", "on_Snapshot__30_d.rb"]);
}

#[test]
fn later_directories_override_and_mask_plugins() {
    let tree = Tree::new();
    for plugin in ["a", "b", "c", "d"] {
        tree.put(&format!("one/{plugin}/on_Snapshot__10_old.py"), 0o755, "");
    }
    tree.put("two/a/on_Snapshot__10_new.py", 0o755, "");
    tree.put("two/b/config.json", 0o644, "{");
    symlink("/dev/null", tree.0.path().join("two/c")).unwrap();
    let found = tree.load(&["one", "two"]);
    let names: Vec<_> = found.plugins.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["a", "d"]);
    assert_eq!(ids(&found.plugins[0]), ["on_Snapshot__10_new"]);
    assert!(
        found.problems[0].to_string().contains("b/config.json: .: EOF"),
        "{:?}",
        found.problems
    );
}

#[test]
fn files_that_others_can_write_are_not_loaded() {
    let tree = Tree::new();
    tree.put("r/hook/on_Snapshot__10_good.py", 0o755, "");
    tree.put("r/hook/on_Snapshot__20_bad.py", 0o777, "");
    tree.put("r/helper/on_Snapshot__10_x.py", 0o755, "");
    tree.put("r/helper/utils.py", 0o664, "");
    let open = tree.put("r/dir/on_Snapshot__10_x.py", 0o755, "");
    chmod(open.parent().unwrap(), 0o775);
    let found = tree.load(&["r"]);
    let names: Vec<_> = found.plugins.iter().map(|p| p.name.as_str()).collect();
    assert_eq!(names, ["hook"]);
    assert_eq!(ids(&found.plugins[0]), ["on_Snapshot__10_good"]);
    assert_eq!(found.problems.len(), 3);
    assert!(found.problems.iter().all(|p| p.what.contains("is writable by other users")));

    chmod(&tree.0.path().join("r"), 0o757);
    let found = tree.load(&["r"]);
    assert_eq!((found.plugins.len(), found.problems.len()), (0, 1));
}

#[test]
fn invalid_entries_are_reported_or_ignored() {
    let tree = Tree::new();
    tree.put("r/p/on_Chapter__10_x.py", 0o755, "");
    tree.put("r/p/on_Snapshot__10_x.py~", 0o755, "");
    tree.put("r/p/on_Snapshot__10_y.py", 0o755, "");
    tree.put("r/p/on_Snapshot__10_y.sh", 0o755, "");
    tree.put("r/a b/on_Snapshot__10_y.sh", 0o755, "");
    tree.put("r/README", 0o644, "");
    symlink("nowhere", tree.0.path().join("r/p/on_Snapshot__30_gone.py")).unwrap();
    let found = tree.load(&["r"]);
    assert_eq!(found.plugins.len(), 1);
    assert_eq!(ids(&found.plugins[0]), ["on_Snapshot__10_y"]);
    assert_eq!(found.problems.len(), 5, "{:?}", found.problems);
}

#[test]
fn hooks_directly_in_a_plugin_directory_form_a_plugin() {
    let tree = Tree::new();
    tree.put("plugins/on_Snapshot__10_mine.sh", 0o644, "");
    tree.put("plugins/wget/on_Snapshot__06_wget.py", 0o755, "");
    let found = tree.load(&["plugins"]);
    let loose = found.plugin("plugins").unwrap();
    assert!(loose.loose && !found.plugin("wget").unwrap().loose);
    assert_eq!(
        (loose.hooks[0].plugin.as_str(), ids(loose)),
        ("plugins", vec!["on_Snapshot__10_mine"])
    );
    assert!(!found.known_keys().contains("PLUGINS_ENABLED"));
}
