#!/bin/bash
# F26: a day of an operator. Archives pages, backs up, loses the database, restores, archives on, moves to another machine, archives
# there, and compares the archive with the database; then both machines become a fleet, whose PostgreSQL is lost and restored:
# no file of an earlier page differs by a byte. The commands are those of archivist-backup(7).
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/../capsule/registries.sh"
source "$(dirname "$0")/../capsule/postgresql.sh"

PAGES=200 MORE=20
data=/var/lib/archivist
password=correct-horse
backups=/srv/test-backups
old=$CAPSULE new=$CAPSULE-moved
# Those that archive.
machines=("$old")

clean() {
    CAPSULE=$old
    capsule stop "$new" 2>/dev/null || true
    leave_fleet
    in_capsule sh -c "rm -rf $backups /srv/test-day $data/.before-*"
    stop_server
    forget_configuration
}

prepare() {
    [[ ${EXTENT-} == full ]] || skip "takes minutes and a second machine: only in the full run"
    forget_pages
    prepare_machine
}

# A site of two hosts whose pages name themselves, and pages that are archived without delay.
prepare_machine() {
    local host
    configure <<'END'
[Orchestrator]
HostDelaySec=0
HostWorkers=8
END
    in_capsule sh -c 'mkdir -p /srv/test-day && cd /srv/test-day &&
        for n in $(seq 400); do echo "<!doctype html><title>page $n</title><p>This is page $n" >$n.html; done'
    for host in 127.0.0.1 127.0.0.2; do
        in_capsule systemd-run --quiet --collect --unit=test-day-$host --property=Type=exec \
            python3 -m http.server 18990 --bind $host --directory /srv/test-day
        wait_for 20 in_capsule bash -c "exec 3<>/dev/tcp/$host/18990" 2>/dev/null
    done
}

stop_server() { in_capsule systemctl stop 'test-day-*' 2>/dev/null || true; }

# archive FIRST LAST: archives these pages and looks at the title and at the copy of each.
archive() {
    local crawl
    crawl=$(addresses "$1" "$2" | in_capsule archivist add --json --plugins wget,headers,title,hashes - | evaluate '.crawl')
    wait_for 600 is_sealed "$crawl"
    assert_archived "$crawl" "$1" "$2"
}

# A crawl of a fleet has no time of its end.
is_sealed() { [[ $(crawl_status "$1") == sealed ]]; }

# addresses FIRST LAST: prints the URLs of these pages; the hosts take turns.
addresses() { seq "$1" "$2" | awk '{ printf "http://127.0.0.%d:18990/%d.html\n", $1 % 2 + 1, $1 }'; }

assert_archived() {
    assert_eq "$((4 * ($3 - $2 + 1))) succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$1" --limit 0)" "results"
    assert_eq "$(seq "$2" "$3")" "$(saved_by "$1" | sort -n)" "pages that were saved"
}

# saved_by CRAWL: the numbers of the pages in the copies of wget, on each machine.
saved_by() {
    local CAPSULE
    for CAPSULE in "${machines[@]}"; do
        query 'map(field("directory"))' list snapshots "$1" --local --limit 0 | tr ' ' '\n' |
            in_capsule xargs -I {} grep -rhoE 'This is page [0-9]+' {}/wget --include=*.html | grep -oE '[0-9]+' || true
    done
}

# Of all pages so far, not of lists of days.
remember() {
    local CAPSULE
    for CAPSULE in "${machines[@]}"; do
        in_capsule sh -c "cd $data/archive && find . -path './[0-9]*/*/[cs][0-9]*' -type f -print0 | sort -z | xargs -0 sha256sum" >"$work/$CAPSULE.sums"
    done
}

assert_unchanged() {
    local CAPSULE
    for CAPSULE in "${machines[@]}"; do
        assert_eq "" "$(differing $data/archive)" "files of earlier pages that changed"
    done
}

# differing DIR: prints the files of earlier pages that are not the same in a directory of a machine.
differing() { in_capsule sh -c "cd $1 && sha256sum --quiet --check - 2>&1" <"$work/$CAPSULE.sums" || true; }

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
    assert_eq "" "$(differing "$aside")" "files that were moved away"
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
    cp "$work/$old.sums" "$work/$new.sums"
    CAPSULE=$new machines=("$new")
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

# The database is that of a fleet of both machines.
loses_postgresql_and_restores() {
    needs moves_to_another_machine
    local first=$((PAGES + 3 * MORE + 1)) during last=$((PAGES + 5 * MORE))
    machines=("$new" "$old")
    start_postgresql
    make_fleet
    during=$(addresses $first $last | in_capsule archivist add --json --plugins wget,headers,title,hashes - | evaluate '.crawl')
    wait_for 60 has_sealed "$during" 5
    in_capsule archivist fleet backup $backups/fleet.dump
    wait_for 600 is_sealed "$during"
    archive $((last + 1)) $((last + MORE))
    remember
    sql postgres 'DROP DATABASE archive WITH (FORCE)' 'CREATE DATABASE archive OWNER operator' >/dev/null
    in_capsule env PGPASSWORD=$password pg_restore --clean --if-exists --no-owner --single-transaction --dbname="$url" $backups/fleet.dump
    ! has_sealed "$during" $((2 * MORE)) || fail "all pages were archived before the backup"
    for_each_machine wait_for 60 went_back
    in_capsule archivist fleet restored
    for_each_machine wait_for 60 is_connected
    wait_for 120 has_sealed "$during" $((2 * MORE))
    wait_for 600 is_sealed "$during"
    assert_archived "$during" $first $last
    archive $((last + MORE + 1)) $((last + 2 * MORE))
    assert_unchanged
    for_each_machine assert_status 0 archivist fsck
    figure "F26: $(cat "$work"/*.sums | wc -l) files of earlier pages on two machines, none differs"
}

# The new machine has the higher ids, so it begins. Both are in the network of the host.
make_fleet() {
    url="postgresql://operator@127.0.0.1:$port/archive?sslmode=disable"
    sql postgres "CREATE ROLE operator LOGIN PASSWORD '$password'" 'ALTER DATABASE archive OWNER TO operator' >/dev/null
    CAPSULE=$new install_fleet
    echo $password | CAPSULE=$new in_capsule archivist fleet init "$url" --name new --password-file -
    echo $password | CAPSULE=$old in_capsule archivist fleet join "$url" --name old --password-file -
    sql archive "UPDATE archivist.fleet SET lease_ms = 30000" >/dev/null
}

for_each_machine() {
    local CAPSULE
    for CAPSULE in "${machines[@]}"; do "$@"; done
}

went_back() { [[ $(in_capsule archivist fleet status 2>&1) == *"went back to an earlier state"* ]]; }

is_connected() { [[ $(unit_property archivist-fleet.service StatusText) == *"connected to"* ]]; }

# has_sealed CRAWL COUNT
has_sealed() { (($(CAPSULE=$old sql archive "SELECT count(*) FROM archivist.page WHERE crawl = ${1#c} AND status = 'sealed'") >= $2)); }

cases archives_and_backs_up loses_the_database_and_restores moves_to_another_machine loses_postgresql_and_restores
