//! Programs of snaps. They start through the set-uid program snap-confine, which cannot work in the
//! sandbox of a hook.

use std::path::Path;

/// Bytes at the start of a program that [`is_of_snap`] needs. Ubuntu's script has about 2,400.
pub const SNAP_HEAD_BYTES: u64 = 8192;

/// Links of commands of snaps lead to this program.
const SNAP: &str = "/usr/bin/snap";

/// Whether a program belongs to a snap. `target` is its path after resolving links, and `head` the
/// start of the file.
///
/// The package chromium-browser of Ubuntu contains a script that executes the command of the snap,
/// and asks to install the snap if it is missing.
pub fn is_of_snap(target: &Path, head: &[u8]) -> bool {
    let roots = ["/snap", "/var/lib/snapd/snap"];
    if target == Path::new(SNAP) || roots.iter().any(|root| target.starts_with(root)) {
        return true;
    }
    let text = String::from_utf8_lossy(head);
    text.starts_with("#!")
        && text.lines().map(str::trim).any(|line| {
            line.starts_with("exec /snap/bin/")
                || line.contains(" snap to be installed")
                || line.contains("snap install ")
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_scripts_of_snaps_are_recognised() {
        let elf = b"\x7fELF\x02\x01\x01".as_slice();
        let script = b"#!/bin/sh\nif true; then\n  exec /snap/bin/chromium \"$@\"\nfi\n".as_slice();
        let stub = b"#!/bin/sh\necho \"Command '$0' requires the chromium snap to be installed.\" >&2\nexit 1\n"
            .as_slice();
        let debian =
            b"#!/bin/sh\n# exec /snap/bin/x\nexec /usr/lib/chromium/chromium \"$@\"\n".as_slice();
        let cases = [
            ("/usr/bin/snap", elf, true),
            ("/snap/chromium/3000/usr/lib/chromium/chrome", elf, true),
            ("/usr/bin/chromium-browser", script, true),
            ("/usr/bin/chromium-browser", stub, true),
            ("/usr/bin/chromium", debian, false),
            ("/opt/google/chrome/google-chrome", elf, false),
            ("/usr/bin/snapper", elf, false),
            ("/usr/bin/program", b"exec /snap/bin/x\n".as_slice(), false),
            ("/usr/bin/empty", b"".as_slice(), false),
        ];
        for (path, head, wanted) in cases {
            let text = String::from_utf8_lossy(head);
            assert_eq!(is_of_snap(Path::new(path), head), wanted, "{path}: {text}");
        }
    }
}
