#!/bin/bash
# Backups while work runs: every file is what its digest says, a second one reads what is new alone, an interrupted one is none,
# and a restoration on an empty disk gives back every byte, or changes nothing.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

data=/var/lib/archivist
backups=/srv/test-backup

prepare() {
    forget_pages
    plugin testfiles <<'SH'
#!/bin/sh
head -c 200000 /dev/urandom >random
mkdir -p deep/er && echo one >deep/er/one && mkdir -m 700 private && echo two >private/two && chmod 600 private/two
SH
    plugin testwaits <<SH
#!/bin/sh
echo early >early
until [ -e $signs/go ]; do sleep 0.1; done
echo late >late
SH
    configure </dev/null
    in_capsule rm -f $signs/go
    in_capsule sh -c "umask 077; printf '[Config]\nTEST_TOKEN=secret\n' >/etc/archivist/archivist.conf.d/91-test-secrets.conf"
}

clean() {
    in_capsule sh -c "rm -rf $backups $data/.before-* /etc/archivist/archivist.conf.d/91-test-secrets.conf $data/lib/test-large /tmp/test-sums"
    forget_configuration
}

backup() { in_capsule archivist backup $backups; }

newest() { in_capsule sh -c "ls -d $backups/2* | tail -n 1"; }

verify() { in_capsule sh -c "cd $1 && sha256sum --check --strict --quiet SHA256SUMS"; }

sealed_pages() { query 'map(select(.status == "sealed").directory)' list snapshots; }

# Digests, owners and modes of all files of the sealed pages.
fingerprint() {
    # shellcheck disable=SC2046 # words
    in_capsule sh -c 'find "$@" -type f -exec sha256sum {} + ; find "$@" -printf "%p %M %u %g\n"' sh $(sealed_pages) | sort
}

backs_up_while_work_runs() {
    local done_crawl running output backup
    done_crawl=$(in_capsule sh -c 'seq -f http://backup.test/%g 5 | archivist add --json --plugins testfiles -' | evaluate '.crawl')
    wait_for 60 is_over "$done_crawl"
    running=$(add --plugins testwaits http://backup.test/waits)
    keep running
    wait_for 30 has_unit 'archivist-hook-testwaits*'
    output=$(backup)
    assert_contains "$output" "complete: $backups/" "output"
    assert_contains "$output" "http://backup.test/waits: it is running" "output"
    backup=$(newest)
    verify "$backup"
    assert_eq "700 root" "$(in_capsule stat --format='%a %U' "$backup")" "the directory"
    assert_eq "600 root" "$(in_capsule stat --format='%a %U' "$backup/config/archivist.conf.d/91-test-secrets.conf")" "secrets"
    assert_nothing "files of the running page" in_capsule find "$backup" -name early
    assert_eq 5 "$(in_capsule find "$backup" -name random | wc -l)" "files of the pages"
    assert_eq ok "$(in_capsule python3 -c "import sqlite3; print(sqlite3.connect('file:$backup/archivist.sqlite3?mode=ro', uri=True).execute('PRAGMA integrity_check').fetchone()[0])")" "the database"
}

second_backup_reads_what_is_new() {
    needs backs_up_while_work_runs
    local crawl output read
    crawl=$(add --plugins testfiles http://backup.test/6)
    wait_for 30 is_over "$crawl"
    output=$(backup)
    verify "$(newest)"
    read=$(sed -nE 's/.*; ([0-9]+) new or changed.*/\1/p' <<<"$output")
    figure "second backup: $(sed -n 2p <<<"$output")"
    # The new page, lists, and the database.
    ((read < 40)) || fail "$read files were read again"
    assert_eq 2 "$(in_capsule sh -c "find $backups -path '*/s1/testfiles/random' -printf '%n\n' | sort -u")" "names of an unchanged file"
}

interrupted_backup_is_none() {
    needs second_backup_reads_what_is_new
    in_capsule head -c 400000000 /dev/zero | in_capsule sh -c "cat >$data/lib/test-large"
    local before unit=test-backup.service
    before=$(newest)
    in_capsule systemd-run --quiet --collect --unit=$unit archivist backup $backups
    wait_for 20 in_capsule sh -c "ls -d $backups/.2*.partial 2>/dev/null"
    in_capsule systemctl kill --signal=KILL $unit
    wait_for 20 has_ended $unit
    assert_eq "$before" "$(newest)" "newest backup"
    stop_all
    assert_status 1 archivist restore "$(in_capsule sh -c "echo $backups/.2*.partial")"
    in_capsule systemctl start $service
    assert_contains "$output" "is no backup" "restoration of an interrupted backup"
    in_capsule rm $data/lib/test-large
    backup
    assert_eq "" "$(in_capsule sh -c "ls -d $backups/.2*.partial 2>/dev/null")" "leftovers"
    verify "$(newest)"
}

has_ended() { ! has_unit "$1"; }

refuses_while_work_runs() {
    needs second_backup_reads_what_is_new
    assert_status 1 archivist restore $backups
    assert_contains "$output" "archivist-orchestrator.service" "what runs"
    assert_contains "$output" "systemctl stop archivist.slice" "the command"
    # It is not masked any more.
    in_capsule systemctl restart $service
}

changed_byte_is_named() {
    needs second_backup_reads_what_is_new
    local file
    file=$(in_capsule sh -c "cd $(newest) && find data -path '*/s3/testfiles/random'")
    stop_all
    in_capsule find $data ! -name runner.lock -printf '%p %s %T@\n' | sort >/tmp/"$CAPSULE"-before
    flip "$(newest)/$file"
    assert_status 1 archivist restore $backups
    flip "$(newest)/$file"
    assert_contains "$output" "$file: is damaged" "the file"
    in_capsule find $data ! -name runner.lock -printf '%p %s %T@\n' | grep -v "^$data " | sort >/tmp/"$CAPSULE"-after
    assert_eq "" "$(grep -v "^$data " /tmp/"$CAPSULE"-before | diff - /tmp/"$CAPSULE"-after)" "changes of the data directory"
    rm /tmp/"$CAPSULE"-before /tmp/"$CAPSULE"-after
    in_capsule systemctl start $service
}

# flip FILE: changes one bit in the middle of a file, in the capsule.
flip() {
    in_capsule python3 -c '
import os, sys
with open(sys.argv[1], "r+b") as file:
    file.seek(os.path.getsize(sys.argv[1]) // 2)
    byte = file.read(1)[0]
    file.seek(-1, 1)
    file.write(bytes([byte ^ 1]))' "$1"
}

restores_on_an_empty_disk() {
    needs backs_up_while_work_runs
    local before after list
    list=$(query 'map(.id + " " + .url)' list snapshots)
    before=$(fingerprint)
    backup
    # A page that the backup does not have.
    wait_for 30 is_over "$(add --plugins testfiles http://backup.test/later)"
    stop_all
    in_capsule find $data -mindepth 1 -delete
    in_capsule find /etc/archivist/archivist.conf.d -name '9*-test*' -delete
    assert_status 0 archivist restore --config $backups
    assert_contains "$output" "all intact" "output"
    in_capsule systemctl start $service
    after=$(fingerprint)
    assert_eq "" "$(diff <(echo "$before") <(echo "$after"))" "files of sealed pages"
    assert_eq "$list" "$(query 'map(.id + " " + .url)' list snapshots)" "pages"
    assert_eq "600 root" "$(in_capsule stat --format='%a %U' /etc/archivist/archivist.conf.d/91-test-secrets.conf)" "secrets"
    assert_eq "" "$(archivist doctor | grep FAIL || true)" "archivist doctor"
    # The page that ran when the backup was made, and a new one.
    in_capsule touch $signs/go
    wait_for 60 is_over "$running"
    assert_eq "succeeded" "$(query 'map(.status)' list results "$running")" "its result"
    wait_for 30 is_over "$(add --plugins testfiles http://backup.test/after)"
    assert_eq "" "$(diff <(echo "$before") <(fingerprint) | grep '^<')" "files of earlier pages, later"
}

keeps_what_was_there() {
    needs restores_on_an_empty_disk
    local page
    page=$(query 'map(select(.url == "http://backup.test/after")) | only | .directory' list snapshots)
    stop_all
    assert_status 0 archivist restore $backups
    assert_contains "$output" "$data/.before-" "output"
    in_capsule sh -c "test ! -e $page && test -e $data/.before-*/${page#"$data"/}/testfiles/random"
    in_capsule systemctl start $service
    # No id of the database that was moved away is handed out again.
    local newest crawl
    newest=$(in_capsule python3 -c "import glob, sqlite3; print(sqlite3.connect(glob.glob('$data/.before-*/archivist.sqlite3')[0]).execute('SELECT max(id) FROM snapshot').fetchone()[0])")
    crawl=$(add --plugins testfiles http://backup.test/again)
    wait_for 30 is_over "$crawl"
    local id
    id=$(query 'only | .id | number' list snapshots "$crawl")
    ((id > newest)) || fail "page s$id after s$newest"
}

restores_the_database_alone() {
    needs restores_on_an_empty_disk
    local before list
    list=$(query 'map(.id + " " + .url)' list snapshots)
    wait_for 60 all_is_over
    before=$(fingerprint)
    backup
    stop_all
    in_capsule sh -c "rm $data/archivist.sqlite3*"
    assert_status 0 archivist restore --database $backups
    in_capsule systemctl start $service
    assert_eq "$list" "$(query 'map(.id + " " + .url)' list snapshots)" "pages"
    assert_eq "" "$(diff <(echo "$before") <(fingerprint))" "files"
}

all_is_over() { [[ -z $(query 'map(select(.ended_at == null).id)' list crawls) ]]; }

# A page that is deleted after the backup comes back only if the user wants it.
asks_about_deleted_pages() {
    needs restores_the_database_alone
    local crawl gone kept
    crawl=$(add --plugins testfiles http://backup.test/gone http://backup.test/kept)
    wait_for 30 is_over "$crawl"
    gone=$(query 'map(select(.url == "http://backup.test/gone").id) | only' list snapshots "$crawl")
    kept=$(query 'map(select(.url == "http://backup.test/kept").id) | only' list snapshots "$crawl")
    backup
    assert_status 0 archivist delete --yes "$gone"
    wait_for 30 in_capsule grep -q "^$gone " $data/deleted
    wait_for 30 are_removed
    stop_all
    assert_status 1 archivist restore $backups
    assert_contains "$output" "$gone  deleted " "the page"
    assert_contains "$output" "http://backup.test/gone" "its URL"
    assert_contains "$output" "nothing was restored" "the refusal"
    assert_status 1 on_a_terminal maybe restore $backups
    assert_contains "$output" "expected y or n; nothing was restored" "another answer"
    assert_status 0 on_a_terminal y restore $backups
    assert_contains "$output" "Delete them again? [y/n]" "the question"
    assert_status 0 archivist restore --yes $backups
    in_capsule systemctl start $service
    assert_eq "$kept" "$(query 'map(.id) | only' list snapshots "$crawl")" "pages of the crawl"
    wait_for 30 are_removed
    assert_nothing "its files" in_capsule find $data/archive -name "$gone"
    stop_all
    assert_status 0 archivist restore --database --keep-deleted $backups
    assert_contains "$output" "are there again" "what was kept"
    in_capsule systemctl start $service
    assert_eq 2 "$(query length list snapshots "$crawl")" "pages of the crawl"
    stop_all
    # The user has decided.
    assert_status 0 archivist restore --database $backups
    in_capsule systemctl start $service
}

# A copy of the database that was put into place by hand.
fsck_names_deleted_pages() {
    needs restores_on_an_empty_disk
    local page
    page=$(add --plugins testfiles http://backup.test/copied)
    wait_for 30 is_over "$page"
    page=$(query 'map(.id) | only' list snapshots "$page")
    in_capsule systemctl stop $service
    in_capsule sh -c "cp $data/archivist.sqlite3 /tmp/test-copy.sqlite3"
    in_capsule systemctl start $service
    assert_status 0 archivist delete --yes "$page"
    wait_for 30 in_capsule grep -q "^$page " $data/deleted
    wait_for 30 are_removed
    stop_all
    in_capsule sh -c "rm $data/archivist.sqlite3*; mv /tmp/test-copy.sqlite3 $data/archivist.sqlite3"
    in_capsule systemctl start $service
    assert_status 3 archivist fsck --quick
    assert_contains "$output" "it was deleted at" "the finding"
    assert_contains "$output" "archivist delete $page" "the fix"
}
are_removed() { ! has_unit 'archivist-delete-*.service'; }

nightly_backup_runs() {
    in_capsule mkdir -p -m 700 $backups
    in_capsule systemctl start archivist-backup@srv-test\\x2dbackup.service
    verify "$(newest)"
    in_capsule systemctl --quiet enable --now archivist-backup@srv-test\\x2dbackup.timer
    assert_contains "$(in_capsule systemctl list-timers --no-pager 'archivist-backup@*')" "archivist-backup@" "timers"
    in_capsule systemctl --quiet disable --now archivist-backup@srv-test\\x2dbackup.timer
}

cases backs_up_while_work_runs second_backup_reads_what_is_new interrupted_backup_is_none refuses_while_work_runs \
    changed_byte_is_named restores_on_an_empty_disk keeps_what_was_there \
    restores_the_database_alone asks_about_deleted_pages nightly_backup_runs fsck_names_deleted_pages
