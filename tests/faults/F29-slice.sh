#!/bin/bash
# F29: an administrator stops archivist.slice while hooks run, and starts the orchestrator again: that is an interruption and no
# failure. Everything continues, and no attempt of a crawl, page or hook is counted. The same for the slice of a user.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 8 60) TIMES=$(times 2 10)
# Seconds that a hook runs: long enough to be stopped.
EACH=3
name=testslice
uid=

clean() {
    in_capsule sh -c "loginctl terminate-user $name; loginctl disable-linger $name" 2>/dev/null || true
    [[ -z $uid ]] || in_capsule systemctl stop "user@$uid.service" 2>/dev/null || true
    in_capsule userdel --remove $name 2>/dev/null || true
    forget_configuration
}

hook() { printf '#!/bin/sh\nsleep %s\necho kept >kept.txt\n' $EACH; }

prepare() {
    plugin teststops < <(hook)
    configure <<'END'
[Orchestrator]
RetrySec=1s
END
}

# assert_uninterrupted WHAT: stdin has "STATUS ATTEMPTS" of each crawl, page and result.
assert_uninterrupted() { assert_eq "sealed 1 succeeded 1" "$(sort -u | xargs)" "status and attempts of $1"; }

no_process_is_left() { [[ -z $(in_capsule sh -c "ps -o pid= -u archivist -g archivist-hook") ]]; }

stopped_slice_of_the_machine() {
    local crawl n
    crawl=$(pages "$PAGES" "slice$$" teststops)
    for ((n = 1; n <= TIMES; n++)); do
        wait_for 60 has_unit 'archivist-hook-teststops*'
        in_capsule systemctl stop archivist.slice
        assert_eq inactive "$(in_capsule systemctl is-active $service || true)" "the orchestrator"
        wait_for 10 no_process_is_left
        ! is_over_in_database "$crawl" || fail "the crawl was over before stop $n"
        in_capsule systemctl start $service
    done
    finish "$crawl" 300
    { for what in crawls snapshots results; do
        query 'map("\(.status) \(.attempts)") | join("\n")' list "$what" "$crawl" --limit 0
    done; } | assert_uninterrupted "the machine"
    assert_eq "$PAGES" "$(in_capsule sh -c "cat /var/lib/archivist/archive/*/slice$$.test/s*/teststops/kept.txt" | grep -c kept)" "files"
    assert_nothing_is_left
    figure "F29 stops of archivist.slice: $TIMES, pages: $PAGES, attempts counted: 0"
}

# is_over_in_database CRAWL: without the orchestrator, which a command would start.
is_over_in_database() {
    in_capsule python3 -c "import sqlite3, sys
row = sqlite3.connect('file:/var/lib/archivist/archivist.sqlite3?mode=ro', uri=True).execute(
    'SELECT status FROM crawl WHERE id = ?', [int('$1'[1:])]).fetchone()
sys.exit(row[0] not in ('sealed', 'cancelled'))"
}

as_user() {
    in_capsule setpriv --reuid "$uid" --regid "$uid" --init-groups env HOME=/home/$name USER=$name \
        XDG_RUNTIME_DIR="/run/user/$uid" DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$uid/bus" "$@"
}

ask() { # FILTER VERB…
    local expression=$1
    shift
    as_user archivist --user "$@" --json | evaluate "$expression"
}

is_over_for_user() { [[ $(ask '.[0] | field("ended_at") != null' list crawls "$1") == true ]]; }

runs_for_user() { [[ -n $(as_user systemctl --user list-units --plain --no-legend --state=running 'archivist-hook-teststops*') ]]; }

stopped_slice_of_a_user() {
    local crawl n
    in_capsule useradd --create-home --shell /bin/bash $name
    uid=$(in_capsule id -u $name)
    keep uid
    in_capsule loginctl enable-linger $name
    wait_for 20 in_capsule test -S "/run/user/$uid/bus"
    hook | as_user sh -c 'dir=~/.local/share/archivist/plugins/teststops; mkdir -p $dir; cat >$dir/on_Snapshot__20_teststops.sh
        chmod 755 $dir/*.sh; echo "{\"type\": \"object\", \"properties\": {}}" >$dir/config.json'
    crawl=$(as_user sh -c "seq -f http://slice.test/%g $PAGES | archivist --user add --json --plugins teststops -" | evaluate '.crawl')
    for ((n = 1; n <= TIMES; n++)); do
        wait_for 60 runs_for_user
        as_user systemctl --user stop archivist.slice
        assert_eq inactive "$(as_user systemctl --user is-active $service || true)" "the orchestrator of the user"
        ! runs_for_user || fail "a hook of the user runs"
        as_user systemctl --user start $service
    done
    wait_for 300 is_over_for_user "$crawl"
    { for what in crawls snapshots results; do
        ask 'map("\(.status) \(.attempts)") | join("\n")' list "$what" "$crawl" --limit 0
    done; } | assert_uninterrupted "a user"
    figure "F29 stops of the slice of a user: $TIMES, pages: $PAGES, attempts counted: 0"
}

cases stopped_slice_of_the_machine stopped_slice_of_a_user
