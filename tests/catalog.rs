//! The journal catalog: what it explains is logged, with the fields that it speaks of.

use std::fs;
use std::path::Path;

fn sources(directory: &Path, text: &mut String) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, text);
        } else {
            text.push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

#[test]
fn every_field_of_the_catalog_is_logged() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let catalog = fs::read_to_string(root.join("units/catalog/archivist.catalog")).unwrap();
    let mut source = String::new();
    sources(&root.join("src"), &mut source);
    let mut fields: Vec<&str> = catalog.split('@').skip(1).step_by(2).collect();
    fields.dedup();
    assert!(fields.len() > 5, "{fields:?}");
    for field in fields {
        let logged = format!("{} = ", field.to_lowercase());
        assert!(source.contains(&logged), "nothing logs {field}");
    }
    for id in catalog.lines().filter_map(|line| line.strip_prefix("-- ")) {
        assert!(source.contains(id), "nothing has the MESSAGE_ID {id}");
    }
}
