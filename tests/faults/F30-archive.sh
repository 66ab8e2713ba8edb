#!/bin/bash
# F30: the units that change the index of full text search and that remove files, and the commands that import and back up, are
# killed at random times: the index has what the rows have, nothing is imported twice, no file of a deleted page stays, and each
# backup that is listed is complete.
# In a full run alone: cases of 52-delete, 53-search, 54-archivebox, 54-saved and 82-backup do the same a few times.
source "$(dirname "$0")/lib.sh"

KILLS=$(times 5 50)
archive=/var/lib/archivist/archive
backups=/srv/test-backup
lists=/srv/test-lists

prepare() {
    in_capsule mkdir -p $lists
    forget_pages
    in_capsule sh -c 'cat >/usr/local/bin/test-killer && chmod 755 /usr/local/bin/test-killer' <<'SH'
#!/bin/bash
# test-killer PATTERN COUNT: kills units at random times, until COUNT of them were killed.
count=$2
while ((count > 0)); do
    sleep "0.$((RANDOM % 4))$((RANDOM % 10))"
    if [[ $(systemctl list-units --plain --no-legend "$1") ]] && systemctl kill --signal=KILL "$1"; then
        count=$((count - 1))
    fi
done
SH
    printf '[Orchestrator]\nRetrySec=1s\nRetryMaxSec=1s\nHostDelaySec=0\n' | configure
}

clean() {
    in_capsule sh -c "systemctl stop test-killer.service test-backup.service 2>/dev/null; rm -rf $backups $lists /usr/local/bin/test-killer"
    forget_configuration
}

# kill_units PATTERN: begins to kill units.
kill_units() { in_capsule systemd-run --quiet --collect --unit=test-killer test-killer "$1" "$KILLS"; }
is_killing() { has_unit test-killer.service; }

# list NAME COUNT: writes a list of pages whose titles have the word NAME.
list() { in_capsule sh -c "{ echo url,title,tags; seq $2 | sed 's|.*|http://$1.test/&,$1 &,$1|'; } >$lists/$1.csv"; }

# keep_list NAME COUNT: records pages with the tag NAME.
keep_list() {
    list "$1" "$2"
    archivist import --keep-only --wait "$lists/$1.csv" >/dev/null
}

# kept WORD: the number of pages of lists whose names begin with WORD.
kept() { query "map(select(.url | contains(\"//$1\"))) | length" list snapshots --limit 0; }

index_is_idle() { ! has_unit archivist-index-pages.service && [[ $(query .search.queued status) == 0 ]]; }
found() { archivist search --json -n 0 --all "$1" 2>/dev/null | gojq .total; }
has_all() { [[ $(found "$1*") == "$(kept "$1")" ]]; }

indexer_is_killed() {
    local batch=0
    kill_units archivist-index-pages.service
    while is_killing; do
        batch=$((batch + 1))
        keep_list indexed$batch 100
        [[ $batch -lt 4 ]] || archivist delete --yes --tag indexed$((batch - 3)) >/dev/null
    done
    wait_for 300 index_is_idle
    wait_for 60 has_all indexed
    [[ $batch -lt 4 ]] || assert_eq 0 "$(found indexed1)" "found pages that were deleted"
    wait_for 180 files_are_removed
    assert_status 0 archivist fsck
    figure "F30 indexer: kills=$KILLS, $batch lists of 100"
}

importer_is_killed() {
    local try killed=0 count=0 name
    for ((try = 1; killed < KILLS; try++)); do
        name=imported$try
        list "$name" 300
        if ! in_capsule timeout --signal=KILL "0.$((RANDOM % 6))$((RANDOM % 10))" archivist import --keep-only "$lists/$name.csv" >/dev/null 2>&1; then
            killed=$((killed + 1))
        fi
        count=$((count + 300))
    done
    # What the killed commands left is taken once.
    in_capsule sh -c "archivist import --keep-only --wait $lists/imported*.csv" >/dev/null
    assert_eq "$count" "$(kept imported)" "pages"
    assert_eq "$count" "$(query 'map(.url | select(contains("//imported"))) | unique | length' list snapshots --limit 0)" "URLs"
    assert_status 0 archivist fsck
    figure "F30 importer: kills=$killed, $count pages"
}

writer_of_entries_is_killed() {
    local batch=0
    kill_units 'archivist-entries-*.service'
    while is_killing; do
        batch=$((batch + 1))
        keep_list written$batch 300
    done
    assert_eq $((batch * 300)) "$(query 'map(select((.url | contains("//written")) and .status == "sealed" and .results.noresults == 1)) | length' list snapshots --limit 0)" "entries"
    assert_status 0 archivist fsck
    figure "F30 writer of entries: kills=$KILLS, $batch lists of 300"
}

removal_is_killed() {
    local batch=0
    kill_units 'archivist-delete-*.service'
    while is_killing; do
        batch=$((batch + 1))
        keep_list removed$batch 300
        archivist delete --yes --tag removed$batch >/dev/null
    done
    wait_for 300 files_are_removed
    assert_eq "" "$(in_capsule sh -c "ls -d $archive/2*/removed* 2>/dev/null")" "directories of deleted pages"
    assert_nothing "what is left" in_capsule find $archive -mindepth 3 -maxdepth 3 -name '.deleted-*'
    assert_eq "$(query 'map(select(.directory)) | length' list snapshots --limit 0)" \
        "$(in_capsule find $archive -mindepth 3 -maxdepth 3 -name 's*' -printf . | wc -c)" "rows, and directories of pages"
    wait_for 180 index_is_idle
    assert_eq 0 "$(found 'removed*')" "found pages that were deleted"
    assert_status 0 archivist fsck
    figure "F30 removal: kills=$KILLS, $batch lists of 300"
}

backup_is_killed() {
    local killed=0 complete
    while ((killed < KILLS)); do
        in_capsule systemd-run --quiet --collect --unit=test-backup archivist backup $backups
        sleep "$((RANDOM % 3)).$((RANDOM % 10))"
        if in_capsule systemctl kill --signal=KILL test-backup.service 2>/dev/null; then killed=$((killed + 1)); fi
        wait_for 60 backup_has_ended
    done
    complete=$(in_capsule sh -c "ls -d $backups/2* 2>/dev/null | wc -l")
    archivist backup $backups >/dev/null
    in_capsule sh -c "for backup in $backups/2*; do cd \$backup && sha256sum --check --strict --quiet SHA256SUMS || exit; done"
    assert_eq "" "$(in_capsule sh -c "ls -d $backups/.2*.partial 2>/dev/null")" "leftovers"
    figure "F30 backup: kills=$killed, complete backups between them=$complete"
}
backup_has_ended() { ! has_unit test-backup.service; }

cases indexer_is_killed importer_is_killed writer_of_entries_is_killed removal_is_killed backup_is_killed
