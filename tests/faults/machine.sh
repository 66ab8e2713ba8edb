# shellcheck shell=bash
# For the faults that need a whole machine (tests/machine/vm): as for the others, and what they call the capsule is the machine.
# It is left running for the next of them; who runs them all switches it off.
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

CAPSULE=$CAPSULE-vm
log=$work/machine

capsule() { "$ROOT/tests/machine/vm" "$@"; }

# A machine with the package, or a skip.
need_machine() {
    ! capsule list | grep -q "^$CAPSULE"$'\t' || return 0
    capsule base "${RELEASE-trixie}" >"$log" 2>&1 || skip "no machine can be made: $(tail -n 1 "$log")"
    capsule boot "$CAPSULE" "${RELEASE-trixie}" --deb "$DEB"
}

# seconds COMMAND…: how many the command took, by our own clock.
seconds() {
    local began=$EPOCHSECONDS
    "$@" >&2
    echo $((EPOCHSECONDS - began))
}
