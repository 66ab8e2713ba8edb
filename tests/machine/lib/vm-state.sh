# shellcheck shell=bash
# The state of a virtual machine, in $CACHE/vms/NAME:
#   release memory base port cgroup pid   one value each
#   disk                             the disk as of the last boot
#   unsure, log                      while it runs: its writes since the boot, see vm-disk.py
#   ready.in, ready.out              the second serial line
#   ssh                              the connection that all commands share
#   alive                            locked by qemu, so the lock says whether the machine is running
#   console                          output of kernel and systemd

vm_dir() { echo "$CACHE/vms/$1"; }

vm_field() { cat "$(vm_dir "$1")/$2"; }

vm_is_running() {
    local alive
    alive=$(vm_dir "$1")/alive
    [[ -e $alive ]] && ! flock -n -s "$alive" true
}

need_vm() {
    check_name "$1"
    vm_is_running "$1" || die "no machine '$1' is running: start one with 'vm boot $1 RELEASE', see 'vm list'"
}

# Waits until qemu has ended, at most SECONDS.
vm_wait_ended() { flock -s -w "$2" "$(vm_dir "$1")/alive" true; }
