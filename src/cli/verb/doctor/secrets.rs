//! Files of the configuration whose secrets other users can read.

use super::Check;
use crate::machine::plugins::plugins;
use archivist_config::inputs::Target;
use archivist_config::{Scope, fragments, inputs};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// Permission bits of other users than owner and group.
const OTHERS: u32 = 0o007;

/// Returns a check for each secret in a file of the configuration that other users can read.
pub fn checks(scope: &Scope) -> Vec<Check> {
    let (Ok(files), Ok(catalogue)) = (fragments::read(scope), plugins(scope)) else {
        // Another check names what is wrong with them.
        return Vec::new();
    };
    let mut checks = Vec::new();
    for file in files.iter().filter(|file| is_open(&file.path)) {
        let inputs = inputs::collect(std::slice::from_ref(file));
        let names = inputs.inputs.iter().filter_map(|input| match &input.target {
            Target::Value(name) if !input.value.is_empty() => Some(name.as_str()),
            Target::Value(_) | Target::Setting(_) => None,
        });
        let secrets: Vec<&str> = names.filter(|key| catalogue.is_secret(key)).collect();
        if !secrets.is_empty() {
            let path = file.path.display();
            checks.push(Check::warn(
                "secrets",
                format!("every user can read {} in '{path}'", secrets.join(", ")),
                format!(
                    "chmod o= '{path}'; 'archivist config --set' writes secrets for root alone"
                ),
            ));
        }
    }
    checks
}

fn is_open(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.permissions().mode() & OTHERS != 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};

    #[test]
    fn secret_that_others_can_read_is_named() {
        let root = tempfile::tempdir().unwrap();
        let scope = Scope::system(root.path());
        let file = root.path().join("etc/archivist/archivist.conf");
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "[Config]\nTIMEOUT=3\nANTHROPIC_API_KEY=SK-1\n").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        let found = checks(&scope);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.contains("ANTHROPIC_API_KEY in"), "{found:?}");
        assert!(!found[0].what.contains("TIMEOUT"));
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        assert_eq!(checks(&scope), []);
    }
}
