#!/bin/bash
# F26: a day of an operator. Archives pages, backs up, loses the database, restores, archives on, moves to another machine, archives
# there, and compares the archive with the database: no file of an earlier page differs by a byte.
# The commands are those of archivist-backup(7).
source "$(dirname "$0")/lib.sh"

PAGES=200 MORE=20
data=/var/lib/archivist
backups=/srv/test-backups
old=$CAPSULE new=$CAPSULE-moved
sums=$work/sums

clean() {
    CAPSULE=$old
    capsule stop "$new" 2>/dev/null || true
    in_capsule rm -rf $backups /srv/test-day
    stop_server
    forget_configuration
}

prepare() {
    [[ ${EXTENT-} == full ]] || skip "takes minutes and a second machine: only in the full run"
    forget_pages
    prepare_machine
}

# A site whose pages name themselves, and pages that are archived without delay.
prepare_machine() {
    configure <<'END'
[Orchestrator]
HostDelaySec=0
HostWorkers=8
END
    in_capsule sh -c 'mkdir -p /srv/test-day && cd /srv/test-day &&
        for n in $(seq 300); do echo "<!doctype html><title>page $n</title><p>This is page $n" >$n.html; done'
    in_capsule systemd-run --quiet --collect --unit=test-day --property=Type=exec \
        python3 -m http.server 18990 --bind 127.0.0.1 --directory /srv/test-day
    wait_for 20 in_capsule bash -c 'exec 3<>/dev/tcp/127.0.0.1/18990' 2>/dev/null
}

stop_server() { in_capsule systemctl stop test-day.service 2>/dev/null || true; }

# archive FIRST LAST: archives these pages and looks at the title and at the copy of each.
archive() {
    local crawl
    crawl=$(in_capsule sh -c "seq -f http://127.0.0.1:18990/%g.html $1 $2 | archivist add --json --plugins wget,headers,title,hashes -" | evaluate '.crawl')
    wait_for 600 is_over "$crawl"
    assert_eq "$((4 * ($2 - $1 + 1))) succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$crawl" --limit 0)" "results"
    assert_eq "$(seq "$1" "$2")" "$(saved_by "$crawl" | sort -n)" "pages that were saved"
}

# saved_by CRAWL: the numbers of the pages in the copies of wget.
saved_by() {
    query 'map(field("directory"))' list snapshots "$1" --limit 0 | tr ' ' '\n' |
        in_capsule xargs -I {} grep -rhoE 'This is page [0-9]+' {}/wget --include=*.html | grep -oE '[0-9]+'
}

# Of all pages so far, not of lists of days.
remember() { in_capsule sh -c "cd $data/archive && find . -path './[0-9]*/*/[cs][0-9]*' -type f -print0 | sort -z | xargs -0 sha256sum" >"$sums"; }
assert_unchanged() {
    assert_eq "" "$(in_capsule sh -c "cd $data/archive && sha256sum --quiet --check - 2>&1" <"$sums" || true)" "files of earlier pages that changed"
}

archives_and_backs_up() {
    local copy
    archive 1 $PAGES
    remember
    in_capsule archivist backup $backups
    copy=$(in_capsule sh -c "echo $backups/2*")
    in_capsule sh -c "cd $copy && sha256sum --check --quiet SHA256SUMS"
    # The archive goes on; these pages are in no backup.
    archive $((PAGES + 1)) $((PAGES + MORE))
    remember
}

loses_the_database_and_restores() {
    needs archives_and_backs_up
    local aside
    in_capsule systemctl stop archivist.slice
    in_capsule sh -c "rm $data/archivist.sqlite3*"
    in_capsule archivist restore $backups
    in_capsule systemctl start $service
    # What the backup does not have was moved away, not removed.
    aside=$(in_capsule sh -c "echo $data/.before-*/archive")
    assert_eq "" "$(in_capsule sh -c "cd $aside && sha256sum --quiet --check - 2>&1" <"$sums" || true)" "files that were moved away"
    assert_eq $PAGES "$(query length list snapshots --limit 0)" "pages of the restored database"
    remember
    archive $((PAGES + MORE + 1)) $((PAGES + 2 * MORE))
    assert_unchanged
    assert_status 0 archivist fsck
    remember
}

moves_to_another_machine() {
    needs loses_the_database_and_restores
    local before
    before=$(query length list snapshots --limit 0)
    in_capsule sh -c "systemctl disable --now $service; systemctl stop archivist.slice; archivist backup $backups"
    capsule boot "$new" "$RELEASE" --deb "$DEB" >"$work/boot" 2>&1 || fail "the other machine did not boot: $(tail -n 5 "$work/boot")"
    capsule cp "$old:$backups" "$work/backups"
    CAPSULE=$new
    capsule cp "$work/backups" "$new:$backups"
    in_capsule systemctl stop archivist.slice
    in_capsule archivist restore --config $backups
    in_capsule systemctl start $service
    prepare_machine
    assert_eq "$before" "$(query length list snapshots --limit 0)" "pages on the other machine"
    assert_unchanged
    archive $((PAGES + 2 * MORE + 1)) $((PAGES + 3 * MORE))
    assert_unchanged
    assert_status 0 archivist fsck
    CAPSULE=$old
    in_capsule systemctl enable --now $service
}

cases archives_and_backs_up loses_the_database_and_restores moves_to_another_machine
