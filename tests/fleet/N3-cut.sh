#!/bin/bash
# N3, N6: the network of a node is cut for two leases, while the clocks of all machines differ by days and drift (see lab.sh). No
# two nodes request pages of a host too close to each other, and no page is lost, also of those that the cut node accepted.
source "$(dirname "$0")/lib.sh"

CUTS=$(times 1 10) PAGES=42

a_cut_node_is_polite_and_loses_no_page() {
    local cut=0 crawl second victim
    while ((cut < CUTS)); do
        cut=$((cut + 1))
        crawl=$(add 1 "cut$cut" $PAGES 14 300)
        wait_for 30 started "cut$cut" 3
        wait_for 30 some_node_holds
        victim=$(busiest)
        network cut "$network" "n$victim"
        second=$(add "$victim" "alone$cut" 12 12 0)
        sleep $((LEASE * 2))
        network mend "$network" "n$victim"
        wait_for $((LEASE * 2 + 90)) is_recorded "$crawl" $PAGES
        wait_for $((LEASE * 2 + 90)) is_recorded "$second" 12
        assert_recorded_once "$crawl" "cut$cut" $PAGES
        assert_recorded_once "$second" "alone$cut" 12
        assert_polite "(cut|alone)$cut"
    done
}

cases a_cut_node_is_polite_and_loses_no_page
