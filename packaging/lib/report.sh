# shellcheck shell=bash
# Messages of the scripts: progress and errors go to stderr, results to stdout.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# For usage errors; other failures exit with 1.
die_usage() {
    say "$*"
    exit 2
}

need_root() {
    [[ $(id -u) -eq 0 ]] || die "must run as root: namespaces, mounts and apt need it"
}

# stage "TEXT" COMMAND…: runs the command and prints its duration, also after a failure.
stage() {
    local name=$1 began=$EPOCHSECONDS status=0
    shift
    "$@" || status=$?
    say "$name: $((EPOCHSECONDS - began)) s$([[ $status -eq 0 ]] || echo ", failed with status $status")"
    return "$status"
}
