# shellcheck shell=bash
# What is known of a virtual machine, in $CACHE/vms/NAME:
#   release memory base port cgroup pid   one value each
#   disk                             what its disk has kept
#   unsure, log                      while it runs: what it wrote since it was switched on, see vm-disk.py
#   ready.in, ready.out              its second serial line
#   ssh                              the connection that all commands share
#   alive                            locked by qemu: the truth about "is it running"
#   console                          what kernel and systemd printed

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

# Blocks until qemu has ended, at most SECONDS.
vm_wait_ended() { flock -s -w "$2" "$(vm_dir "$1")/alive" true; }
