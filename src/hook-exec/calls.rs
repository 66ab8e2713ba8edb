//! Refuses system calls that are newer than the deny lists in units/. systemd knows the names of its
//! libseccomp only, so a list cannot name a call of a newer kernel: open_tree_attr(2) does what the refused
//! open_tree(2) does.

use nix::libc::{
    BPF_ABS, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, ENOSYS, SECCOMP_RET_ALLOW,
    SECCOMP_RET_ERRNO,
};
use nix::sys::prctl::get_no_new_privs;
use seccompiler::{apply_filter, sock_filter};
use std::io;

/// The first number that is refused: that of open_tree_attr(2) in Linux 6.15. Numbers from 424 on are the
/// same on all architectures. Raise it when the lists in units/ have been compared with newer calls.
const FIRST_REFUSED: u32 = 467;
/// Offset of the number in the data of a filter (seccomp(2)).
const NUMBER: u32 = 0;

/// Makes newer calls fail with ENOSYS, as on an older kernel, for this program and what it executes.
/// Does nothing in units without NoNewPrivileges=, such as those of alerts: they have no lists either.
///
/// # Errors
/// If the kernel refuses the filter.
pub fn refuse_newer() -> io::Result<()> {
    if !get_no_new_privs()? {
        return Ok(());
    }
    let step = |code: u32, jt, jf, k| sock_filter { code: code as u16, jt, jf, k };
    let program = [
        step(BPF_LD | BPF_W | BPF_ABS, 0, 0, NUMBER),
        step(BPF_JMP | BPF_JGE | BPF_K, 0, 1, FIRST_REFUSED),
        step(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ERRNO | ENOSYS as u32),
        step(BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW),
    ];
    apply_filter(&program).map_err(io::Error::other)
}
