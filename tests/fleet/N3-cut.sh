#!/bin/bash
# N3, N6: the network of a node is cut for two leases, while the clocks of all machines differ by days and drift (see lab.sh). No
# two nodes request pages of a host too close to each other, and no page is lost, also of those that the cut node accepted.
source "$(dirname "$0")/lib.sh"

CUTS=$(times 1 10) PAGES=42

a_cut_node_is_polite_and_loses_no_page() { cut_nodes cut; }

# In addition to the clocks since boot and the clock of the database, which always differ.
so_it_is_if_wall_clocks_are_days_apart() {
    local apart
    set_wall_clock 1 86400 1.01
    set_wall_clock 2 -86400 0.99
    apart=$(($(on 1 date +%s) - $(on 2 date +%s)))
    ((apart > 2 * 86400 - 60 && apart < 2 * 86400 + 60)) || fail "the wall clocks of nodes 1 and 2 are $apart s apart"
    cut_nodes clock
    reset_wall_clocks
}

# cut_nodes NAME
cut_nodes() {
    local cut=0 name crawl second victim
    while ((cut < CUTS)); do
        cut=$((cut + 1)) name=$1$cut
        crawl=$(add 1 "$name" $PAGES 14 300)
        wait_for 30 started "$name" 3
        wait_for 30 some_node_holds
        victim=$(busiest)
        network cut "$network" "n$victim"
        second=$(add "$victim" "alone-$name" 12 12 0)
        sleep $((LEASE * 2))
        network mend "$network" "n$victim"
        wait_for $((LEASE * 2 + 90)) is_recorded "$crawl" $PAGES
        wait_for $((LEASE * 2 + 90)) is_recorded "$second" 12
        assert_recorded_once "$crawl" "$name" $PAGES
        assert_recorded_once "$second" "alone-$name" 12
        assert_polite "(alone-|)$name"
    done
}

after_failure() {
    reset_wall_clocks
    mend_lab
}

# shellcheck disable=SC2046 # none, or one
cases a_cut_node_is_polite_and_loses_no_page $([[ ${EXTENT-short} == short ]] || echo so_it_is_if_wall_clocks_are_days_apart)
