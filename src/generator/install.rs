//! Section [Install] of a declaration. Generated units cannot be enabled, so the generator makes
//! the links that systemctl(1) would make.

use super::unit_file::Units;
use archivist_config::declare::reader::Reader;

/// Supported keys, with the directory of their links.
const WANTS: [(&str, &str); 3] =
    [("WantedBy", "wants"), ("RequiredBy", "requires"), ("UpheldBy", "upholds")];

pub fn links(reader: &mut Reader<'_>, unit: &str, units: &mut Units) {
    let entries: Vec<_> = reader.section("Install").collect();
    // An empty assignment resets earlier ones.
    for (at, entry) in entries.iter().enumerate() {
        let later = entries[at..].iter();
        if entry.value.is_empty() || later.clone().any(|e| e.key == entry.key && e.value.is_empty())
        {
            continue;
        }
        let directory = WANTS.iter().find(|(key, _)| *key == entry.key);
        if directory.is_none() && entry.key != "Alias" {
            if !entry.key.starts_with("X-") {
                reader.warn(
                    entry,
                    &format!(
                        "[Install] {}= has no effect in this file; there are WantedBy= RequiredBy= UpheldBy= Alias=",
                        entry.key
                    ),
                );
            }
            continue;
        }
        for name in entry.value.split_whitespace() {
            if !is_unit_name(name) {
                reader.refuse(
                    entry,
                    &format!("{}= names '{name}', which is not the name of a unit", entry.key),
                );
                continue;
            }
            match directory {
                Some((_, kind)) => {
                    units.link(format!("{name}.{kind}/{unit}"), format!("../{unit}"))
                }
                None => units.link(name.to_owned(), unit.to_owned()),
            }
        }
    }
}

/// Returns whether `name` is a file name with the suffix of a unit (systemd.unit(5)).
fn is_unit_name(name: &str) -> bool {
    const ENDS: [&str; 7] =
        [".target", ".service", ".timer", ".slice", ".path", ".socket", ".mount"];
    let plain = |b: u8| b.is_ascii_alphanumeric() || b":-_.\\@".contains(&b);
    name.len() < 256
        && !name.starts_with('.')
        && name.bytes().all(plain)
        && ENDS.iter().any(|end| name.strip_suffix(end).is_some_and(|stem| !stem.is_empty()))
}
