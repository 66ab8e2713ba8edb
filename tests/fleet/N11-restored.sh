#!/bin/bash
# N11: PostgreSQL is restored from a dump that lacks the latest pages. No node works with it before that is declared; then each
# page is listed, no id is given twice, no page is fetched again but those that nodes worked on when the dump was made, and no file
# of an earlier page differs.
source "$(dirname "$0")/lib.sh"

# digests N: prints the SHA-256 of each file of each page in the archive of a node.
digests() {
    on "$1" sh -c 'cd /var/lib/archivist/archive && find . -regextype posix-extended -type f \
        -regex "\./[0-9]{8}/[^/]+/s[0-9]+[^/]*/.*" -exec sha256sum {} + | LC_ALL=C sort'
}

# history N FILE: prints what a node did with the page of a file, by its index and by the journal.
history() {
    local page
    page=$(dirname "$2")
    on "$1" sh -c 'cd /var/lib/archivist/archive && cat "$1/index.jsonl"; journalctl --boot --output=short-precise --no-pager' sh "$page" |
        grep -E "^\{|$(basename "$page")[^0-9]|fleet|generation" | tail -n 100
}

# requested head, requested tail: prints the pages of the first $requests lines of the log of the web server, or of the others.
requested() {
    local which=--lines=$requests
    [[ $1 == head ]] || which=--lines=+$((requests + 1))
    "$1" "$which" "$lab/web.log" | sed -nE "s,.* (/.*/(early|late|after)-$run-[0-9]+)$,\1,p" | sort -u
}

went_back() { [[ $(on "$1" archivist fleet status 2>&1) == *"went back to an earlier state"* ]]; }

is_connected() { [[ $(on "$1" archivist fleet nodes 2>&1) == *"n$1 "*connected* ]]; }

a_restored_database_gets_what_is_later_than_the_backup() {
    local first second third n began ids changed twice again open requests
    # Slow pages, so that the dump is made while nodes work on some.
    first=$(add 1 early 24 12 1500)
    wait_for 60 has_recorded "$first" 8
    database_dump "$work/fleet.dump"
    wait_for 120 is_recorded "$first" 24
    second=$(add 2 late 24 12 0)
    wait_for 120 is_recorded "$second" 24
    for n in "${NODES[@]}"; do digests "$n" >"$work/before.$n"; done
    requests=$(wc -l <"$lab/web.log")
    database_restore "$work/fleet.dump"
    open=$(sql "SELECT count(*) FROM archivist.page WHERE crawl = $first AND status = 'open' AND epoch > 0")
    ((open > 0)) || fail "no node worked on a page when the dump was made"
    for n in "${NODES[@]}"; do wait_for 60 went_back "$n"; done
    # What the database answers lacks what is later, which each answer says.
    for n in "list snapshots" "status" "fleet nodes"; do
        # shellcheck disable=SC2086 # a verb and its arguments
        assert_contains "$(on 1 archivist $n 2>&1)" "went back to an earlier state" "archivist $n"
    done
    sleep_between $((LEASE * 1000)) $((LEASE * 1000 + 2000))
    assert_eq 0 "$(grep -c "/after-$run-" "$lab/web.log")" "requests of pages that were not added yet"
    began=$(now_ms)
    assert_contains "$(on 1 archivist fleet restored)" "declared restored" "what restored says"
    for n in "${NODES[@]}"; do wait_for 60 is_connected "$n"; done
    wait_for 60 is_recorded "$first" 24
    wait_for 60 is_recorded "$second" 24
    figure "N11: all 48 pages were listed again after $(($(now_ms) - began)) ms"
    third=$(add 3 after 24 12 0)
    wait_for $((LEASE + 120)) is_recorded "$third" 24
    assert_recorded_once "$first" early 24
    assert_recorded_once "$second" late 24
    assert_recorded_once "$third" after 24
    assert_polite "(early|late|after)"
    # By the log of the web server. A page that was requested twice before is one whose hook failed, or whose node was too slow.
    twice=$(comm -12 <(requested head) <(requested tail))
    [[ -z $twice ]] || grep -F "$twice" "$lab/web.log"
    assert_eq "" "$(grep -v /early- <<<"$twice" || true)" "pages that were added after the dump, and requested before and after it was restored"
    again=$(grep -c /early- <<<"$twice" || true)
    ((again <= open)) || fail "$again pages were requested again, of $open that nodes worked on when the dump was made"
    figure "N11: $again pages were fetched again, of $open that nodes worked on when the dump was made"
    # A page may have directories on two nodes, if it was begun on one and handed to another, but an id is of one page.
    ids=$(for n in "${NODES[@]}"; do on "$n" sh -c 'cd /var/lib/archivist/archive && find . -regextype posix-extended \
        -regex "\./[0-9]{8}/[^/]+/s[0-9]+[^/]*" -printf "%P\n"'; done | sort -u | sed 's,.*/,,' | sort | uniq -d)
    assert_eq "" "$ids" "ids of two pages"
    for n in "${NODES[@]}"; do
        changed=$(LC_ALL=C comm -23 "$work/before.$n" <(digests "$n"))
        [[ -z $changed ]] || history "$n" "${changed##* }"
        assert_eq "" "$changed" "changed files of node $n"
        figure "N11: node $n: $(wc -l <"$work/before.$n") files of earlier pages, none differs"
    done
}

cases a_restored_database_gets_what_is_later_than_the_backup
