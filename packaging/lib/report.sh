# shellcheck shell=bash
# What the scripts say: progress and errors go to stderr, so that stdout stays for results.

say() { printf '%s: %s\n' "${0##*/}" "$*" >&2; }

die() {
    say "$*"
    exit 1
}

# For mistakes on the command line; the other failures exit with 1.
die_usage() {
    say "$*"
    exit 2
}

need_root() {
    [[ $(id -u) -eq 0 ]] || die "must run as root: namespaces, mounts and apt need it"
}

# stage "words" COMMAND…: runs it and says how long it took, whatever the outcome.
stage() {
    local name=$1 began=$EPOCHSECONDS status=0
    shift
    "$@" || status=$?
    say "$name: $((EPOCHSECONDS - began)) s$([[ $status -eq 0 ]] || echo ", failed with status $status")"
    return "$status"
}
