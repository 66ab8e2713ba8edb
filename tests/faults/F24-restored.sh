#!/bin/bash
# F24: the database is replaced by an older copy, moved away, or takes turns with another one: no file of an earlier page
# changes, no id is handed out twice, and the journal says why ids jump.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 12 200)
data=/var/lib/archivist
message=28a8ed6baf394729a5c5648d86e609e3
sums=$work/sums

clean() {
    in_capsule rm -rf /root/F24
    forget_configuration
}

prepare() {
    plugin testsaves <<'SH'
#!/bin/sh
for argument; do
    case $argument in --url=*) echo "${argument#*=}" >address.txt ;; esac
done
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "address.txt"}'
SH
    configure </dev/null
    in_capsule mkdir -p /root/F24
}

# archive NAME: archives $PAGES pages of one host, whose addresses contain NAME.
archive() {
    local crawl
    crawl=$(in_capsule sh -c "seq -f http://restored.test/$1/%g $PAGES | archivist add --json --plugins testsaves -" | evaluate '.crawl')
    finish "$crawl" 300
    assert_eq "$PAGES succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$crawl" --limit 0)" "results of $1"
}

files() { in_capsule sh -c "cd $data/archive && find . -path './[0-9]*/*/[cs][0-9]*' -type f -print0 | sort -z | xargs -0 sha256sum"; }

# Remembers all files of the pages so far. Lists of days and of the archive are not among them.
remember() { files >"$sums"; }

assert_unchanged() {
    local changed
    changed=$(in_capsule sh -c "cd $data/archive && sha256sum --quiet --check - 2>&1" <"$sums" || true)
    assert_eq "" "$changed" "files of earlier pages that changed"
}

directories() { in_capsule sh -c "cd $data/archive && find . -mindepth 3 -maxdepth 3 -path './[0-9]*/restored.test/s*' -printf '%f\n'"; }

# assert_pages COUNT: as many pages of this test have a directory, none has the id of another one, and none had to give way.
assert_pages() {
    assert_eq "$1" "$(directories | sed 's/-.*//' | sort -u | wc -l)" "different ids"
    assert_eq "" "$(directories | grep -e - || true)" "directories that were taken"
    assert_eq "$1" "$(in_capsule sh -c "cat $data/archive/[0-9]*/restored.test/s*/testsaves/address.txt" | sort -u | wc -l)" "saved pages"
}

raised() { in_capsule journalctl --quiet --no-pager --output=cat MESSAGE_ID=$message; }

# replaced COMMAND WORDS NAME: runs COMMAND in the data directory while the orchestrator is stopped, and archives pages of NAME;
# asserts one message with WORDS.
replaced() {
    local before
    before=$(raised | wc -l)
    remember
    in_capsule sh -c "systemctl stop $service && cd $data && $1"
    restart
    archive "$3"
    assert_eq $((before + 1)) "$(raised | wc -l)" "messages about ids"
    assert_contains "$(raised | tail -n 1)" "$2" "message about ids"
    # The next start has nothing to say.
    restart
    archivist status >/dev/null
    assert_eq $((before + 1)) "$(raised | wc -l)" "messages about ids after another start"
    assert_unchanged
}

# SQLite's backup while the orchestrator runs.
copy_while_it_runs() {
    in_capsule python3 -c "import sqlite3
copy = sqlite3.connect('/root/F24/yesterday')
sqlite3.connect('file:$data/archivist.sqlite3?mode=ro', uri=True).backup(copy)"
}

older_copy_is_restored() {
    archive before
    copy_while_it_runs
    archive lost
    replaced 'rm archivist.sqlite3*; cp /root/F24/yesterday archivist.sqlite3' 'is older than the archive' after
    assert_pages $((3 * PAGES))
}

database_is_moved_away() {
    needs older_copy_is_restored
    replaced 'mv archivist.sqlite3* /root/F24' 'the database is new' new
    assert_pages $((4 * PAGES))
}

two_databases_take_turns() {
    needs database_is_moved_away
    replaced 'mkdir /root/F24/other; mv archivist.sqlite3* /root/F24/other; mv /root/F24/archivist.sqlite3* .' \
        'or another one uses the archive' first
    replaced 'mv archivist.sqlite3* /root/F24; mv /root/F24/other/archivist.sqlite3* .' 'or another one uses the archive' second
    assert_pages $((6 * PAGES))
}

# Without marks: of a version that wrote none.
marks_are_missing() {
    needs two_databases_take_turns
    replaced 'rm -r archive/.ids archivist.sqlite3*' 'the database is new' unmarked
    assert_pages $((7 * PAGES))
    assert_nothing_is_left
    figure "F24 databases replaced: 5, pages of the same host and day: $((7 * PAGES)), files changed: 0, ids handed out twice: 0"
}

cases older_copy_is_restored database_is_moved_away two_databases_take_turns marks_are_missing
