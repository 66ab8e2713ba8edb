# shellcheck shell=bash
# For fault tests that require a virtual machine (tests/machine/vm): the functions for capsules address the machine.
# It stays running for the next test; tests/run stops it.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CAPSULE=$CAPSULE-vm
log=$work/machine

capsule() { "$ROOT/tests/machine/vm" "$@"; }

# Boots a machine with the package, or skips the test.
need_machine() {
    ! capsule list | grep -q "^$CAPSULE"$'\t' || return 0
    capsule base "${RELEASE-trixie}" >"$log" 2>&1 || skip "no machine can be made: $(tail -n 1 "$log")"
    capsule boot "$CAPSULE" "${RELEASE-trixie}" --deb "$DEB"
}

# seconds COMMAND…: prints the run time of COMMAND in seconds, by the clock of the host.
seconds() {
    local began=$EPOCHSECONDS
    "$@" >&2
    echo $((EPOCHSECONDS - began))
}
