#!/bin/bash
# N1: a node loses its power in mid-crawl. Other nodes take over within a lease and 15 s; no page is lost or recorded twice.
source "$(dirname "$0")/lib.sh"

CUTS=$(times 1 20) PAGES=42

a_power_cut_loses_no_page() {
    local cut=0 lost='' from crawl began took most=0
    while ((cut < CUTS)); do
        cut=$((cut + 1)) from=$((RANDOM % 3 + 1))
        crawl=$(add "$from" "power$cut" $PAGES 14 300)
        ((cut > 1)) || wait_for 30 is_sent "$crawl"
        wait_for 30 started "power$cut" 1
        sleep_between 0 4000
        # The first time a node that has hosts, so that another node must take over.
        [[ -z $lost ]] && lost=$(busiest) || lost=$((RANDOM % 3 + 1))
        echo "cut $cut: node $lost, pages from node $from"
        began=$(now_ms)
        power_off "$lost"
        # The node that accepted the crawl may have the pages that the others require in its outbox.
        if ((lost == from && cut > 1 || cut % 2 == 0)); then sleep_between 0 $((LEASE * 1000)); power_on "$lost"; fi
        wait_for $((LEASE * 2 + 90)) is_recorded "$crawl" $PAGES
        assert_recorded_once "$crawl" "power$cut" $PAGES
        assert_polite "power$cut"
        took=$(taken_over_after "$began" "power$cut" "$lost")
        ((took <= (LEASE + 15) * 1000)) || fail "node $lost was taken over after $took ms"
        ((took <= most)) || most=$took
        is_on "$lost" || power_on "$lost"
    done
    figure "N1 cuts=$CUTS pages=$((CUTS * PAGES)) lost=0 twice=0 longest takeover=$most ms, lease=$LEASE s"
}

# The outbox of the node that accepted the crawl is empty.
is_sent() { [[ $(sql "SELECT count(*) FROM archivist.page WHERE crawl = $1") == "$PAGES" ]]; }

cases a_power_cut_loses_no_page
