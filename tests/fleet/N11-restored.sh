#!/bin/bash
# N11: PostgreSQL is restored from a dump that lacks the latest pages. No node works with it before that is declared; then each
# page is listed, no id is given twice, no page is fetched again, and no file of an earlier page differs.
source "$(dirname "$0")/lib.sh"

# digests N: prints the SHA-256 of each file of each page in the archive of a node.
digests() {
    on "$1" sh -c 'cd /var/lib/archivist/archive && find . -regextype posix-extended -type f \
        -regex "\./[0-9]{8}/[^/]+/s[0-9]+[^/]*/.*" -exec sha256sum {} + | sort -k 2'
}

went_back() { [[ $(on "$1" archivist fleet status 2>&1) == *"went back to an earlier state"* ]]; }

is_connected() { [[ $(on "$1" archivist fleet nodes 2>&1) == *"n$1 "*connected* ]]; }

a_restored_database_gets_what_is_later_than_the_backup() {
    local first second third n began ids changed
    first=$(add 1 early 24 12 0)
    wait_for 60 has_recorded "$first" 8
    database_dump "$work/fleet.dump"
    wait_for 120 is_recorded "$first" 24
    second=$(add 2 late 24 12 0)
    wait_for 120 is_recorded "$second" 24
    for n in "${NODES[@]}"; do digests "$n" >"$work/before.$n"; done
    database_restore "$work/fleet.dump"
    (($(sql "SELECT count(*) FROM archivist.page WHERE crawl = $first AND status <> 'open'") < 24)) ||
        fail "the dump has all pages"
    for n in "${NODES[@]}"; do wait_for 60 went_back "$n"; done
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
    # By the log of the web server.
    assert_eq "" "$(sed -nE "s,.* (/.*/(early|late|after)-$run-[0-9]+)$,\1,p" "$lab/web.log" | sort | uniq -d)" "pages that were requested twice"
    ids=$(for n in "${NODES[@]}"; do on "$n" sh -c 'cd /var/lib/archivist/archive && find . -regextype posix-extended \
        -regex "\./[0-9]{8}/[^/]+/s[0-9]+[^/]*" -printf "%f\n"'; done | sort | uniq -d)
    assert_eq "" "$ids" "ids with two directories"
    for n in "${NODES[@]}"; do
        changed=$(comm -23 "$work/before.$n" <(digests "$n"))
        assert_eq "" "$changed" "changed files of node $n"
        figure "N11: node $n: $(wc -l <"$work/before.$n") files of earlier pages, none differs"
    done
}

cases a_restored_database_gets_what_is_later_than_the_backup
