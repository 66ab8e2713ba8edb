//! Restores the files of an archive below a directory. Names that would lead out of it are refused,
//! although only a damaged or foreign archive has any.

use crate::failure::{Failure, Result, at};
use nix::fcntl::OFlag;
use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, SystemTime};
use tar::{Archive, EntryType};

/// Restores the entries of an archive whose first part is `top`, without it, below `directory`. The
/// manifest is not restored: the sum of the whole archive says more.
pub fn unpack(archive: impl Read, top: &str, directory: &Path) -> Result<()> {
    let bad = |error: io::Error| Failure::new(format!("failed to read the archive: {error}"));
    let mut archive = Archive::new(archive);
    for entry in archive.entries().map_err(bad)? {
        let mut entry = entry.map_err(bad)?;
        let name = entry.path().map_err(bad)?.into_owned();
        let Some(below) = below(&name, top)? else {
            continue;
        };
        let path = directory.join(below);
        let kind = entry.header().entry_type();
        match kind {
            EntryType::Directory => fs::create_dir_all(&path).map_err(at("create", &path))?,
            EntryType::Symlink => {
                let target = entry
                    .link_name()
                    .map_err(bad)?
                    .unwrap_or_default()
                    .into_owned();
                symlink(target, &path).map_err(at("create", &path))?;
            }
            EntryType::Regular => {
                let mode = entry.header().mode().map_err(bad)?;
                let mtime = entry.header().mtime().map_err(bad)?;
                let mut file = File::options()
                    .write(true)
                    .create_new(true)
                    .mode(mode & 0o666)
                    .custom_flags(OFlag::O_NOFOLLOW.bits())
                    .open(&path)
                    .map_err(at("create", &path))?;
                io::copy(&mut entry, &mut file).map_err(at("write", &path))?;
                let time = SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(mtime));
                if let Some(time) = time {
                    file.set_modified(time).map_err(at("write", &path))?;
                }
            }
            other => {
                let name = name.display();
                return Err(Failure::differs(format!(
                    "failed to restore '{name}': entries of type {other:?} are not accepted"
                )));
            }
        }
    }
    Ok(())
}

/// The path below `top`; `None` for the manifest.
fn below(name: &Path, top: &str) -> Result<Option<PathBuf>> {
    let mut parts = name.components();
    let first = parts.next();
    let rest = parts.as_path().to_owned();
    let is_plain = rest
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    match first {
        Some(Component::Normal(first)) if first == top && is_plain => Ok(Some(rest)),
        Some(Component::Normal(first))
            if rest.as_os_str().is_empty() && first == &*format!("{top}.sha256") =>
        {
            Ok(None)
        }
        _ => Err(Failure::differs(format!(
            "failed to restore '{}': the archive of {top} must not contain it",
            name.display()
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sum_of;
    use crate::pack::pack;
    use std::os::unix::fs::MetadataExt;

    fn page(directory: &Path) -> PathBuf {
        let page = directory.join("s7");
        fs::create_dir_all(page.join("wget/a.test")).unwrap();
        fs::write(page.join("index.html"), "<p>page").unwrap();
        fs::write(page.join("wget/a.test/new\nline"), "x".repeat(100_000)).unwrap();
        fs::write(page.join("wget").join("n".repeat(200)), "long").unwrap();
        fs::create_dir(page.join("empty")).unwrap();
        symlink("wget/a.test", page.join("link")).unwrap();
        page
    }

    fn packed(page: &Path) -> Vec<u8> {
        let mut bytes = Vec::new();
        pack(page, &mut bytes).unwrap();
        bytes
    }

    #[test]
    fn archive_of_the_restored_files_has_the_same_bytes() {
        let place = tempfile::tempdir().unwrap();
        let first = packed(&page(place.path()));
        let other = place.path().join("other/s7");
        fs::create_dir_all(&other).unwrap();
        unpack(&first[..], "s7", &other).unwrap();
        assert_eq!(
            sum_of(&first[..]).unwrap(),
            sum_of(&packed(&other)[..]).unwrap()
        );
        let target = fs::read_link(other.join("link")).unwrap();
        assert_eq!(target, Path::new("wget/a.test"));
        let times = [place.path().join("s7"), other];
        let [old, new] = times.map(|page| page.join("index.html").metadata().unwrap().mtime());
        assert_eq!(old, new);
    }

    #[test]
    fn manifest_is_checked_by_sha256sum() {
        let place = tempfile::tempdir().unwrap();
        let bytes = packed(&page(place.path()));
        let out = place.path().join("out");
        fs::create_dir(&out).unwrap();
        fs::write(out.join("a.tar"), &bytes).unwrap();
        let run = |program: &str, arguments: &[&str]| {
            let command = std::process::Command::new(program)
                .args(arguments)
                .current_dir(&out)
                .output()
                .unwrap();
            assert!(command.status.success(), "{command:?}");
        };
        run("tar", &["-xf", "a.tar"]);
        run("sha256sum", &["--check", "--strict", "s7.sha256"]);
    }

    #[test]
    fn names_that_lead_out_are_refused() {
        let place = tempfile::tempdir().unwrap();
        for name in ["s8/x", "s7/../x", "x", "s7.sha256/x"] {
            let mut builder = tar::Builder::new(Vec::new());
            let mut header = tar::Header::new_gnu();
            header.set_size(1);
            header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, &b"x"[..]).unwrap();
            let bytes = builder.into_inner().unwrap();
            let failure = unpack(&bytes[..], "s7", place.path()).unwrap_err();
            assert!(failure.differs, "{name}: {failure}");
        }
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 0);
    }

    proptest::proptest! {
        #[test]
        fn damaged_archives_never_panic(at in 0usize..6000, byte: u8) {
            let place = tempfile::tempdir().unwrap();
            let page = place.path().join("s7");
            fs::create_dir(&page).unwrap();
            fs::write(page.join("a"), "a").unwrap();
            let mut bytes = packed(&page);
            let at = at % bytes.len();
            bytes[at] = byte;
            let out = place.path().join("out");
            fs::create_dir(&out).unwrap();
            let _ = unpack(&bytes[..], "s7", &out);
            assert_eq!(fs::read_dir(place.path()).unwrap().count(), 2);
        }
    }
}
