# shellcheck shell=bash
# The state of a capsule, in $CACHE/capsules/NAME:
#   release pid cgroup binds   one value each (binds: one per line)
#   network clock              values of --network and --clock; empty: as the machine
#   upper work root            the overlay; root is a mount only inside the capsule
#   alive                      locked by the process that waits for the inner PID 1, so the lock says whether the
#                              capsule is running; a pid could have been reused
#   log                        output of the launcher and the inner PID 1

CACHE=${ARCHIVIST_CAPSULE_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/archivist-capsule}

check_name() {
    [[ $1 =~ ^[a-z][a-z0-9-]{0,30}$ ]] ||
        die_usage "bad capsule name '$1': a lower-case letter, then at most 30 of a-z, 0-9 and -"
}

state_dir() { echo "$CACHE/capsules/$1"; }

# state_of NAME FIELD: starts no program, because every command in a capsule asks for several fields.
state_of() { printf '%s\n' "$(<"$CACHE/capsules/$1/$2")"; }

is_running() {
    local alive=$CACHE/capsules/$1/alive
    [[ -e $alive ]] && ! flock -n -s 8 8<"$alive"
}

need_running() {
    check_name "$1"
    is_running "$1" || die "no capsule '$1' is running: start one with 'capsule boot $1 RELEASE', see 'capsule list'"
}

# Waits until the inner PID 1 has ended and was reaped, at most SECONDS.
wait_ended() {
    flock -s -w "$2" "$(state_dir "$1")/alive" true
}
