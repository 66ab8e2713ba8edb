#!/bin/bash
# N5: the primary dies, and its standby lacks the last 5 s. Every page is recorded once by the new primary, and URLs that a node
# accepted in these seconds are sent again.
source "$(dirname "$0")/lib.sh"

FAILOVERS=$(times 1 5) PAGES=42 LOST_SECONDS=5

a_failover_that_loses_commits_loses_no_page() {
    local turn=0 crawl second old before
    while ((turn < FAILOVERS)); do
        turn=$((turn + 1)) old=$(<"$lab/primary")
        database_standby
        crawl=$(add 1 "over$turn" $PAGES 14 300)
        wait_for 30 started "over$turn" 6
        network cut "$network" "$(database_other)"
        second=$(add 2 "lost$turn" 12 12 0)
        wait_for 10 is_known "$second" 12
        sleep $LOST_SECONDS
        before=$(sql "SELECT count(*) FROM archivist.page WHERE status <> 'open' AND crawl IN ($crawl, $second)")
        database_kill "$old"
        network mend "$network" "$(database_other)"
        database_promote
        figure "N5 recorded before=$before and after=$(sql "SELECT count(*) FROM archivist.page
            WHERE status <> 'open' AND crawl IN ($crawl, $second)"), URLs of the second crawl after=$(sql "SELECT count(*) FROM archivist.page WHERE crawl = $second")"
        wait_for $((LEASE * 3 + 90)) is_recorded "$crawl" $PAGES
        wait_for $((LEASE * 2 + 90)) is_recorded "$second" 12
        assert_recorded_once "$crawl" "over$turn" $PAGES
        assert_recorded_once "$second" "lost$turn" 12
        assert_polite "(over|lost)$turn"
    done
}

is_known() { [[ $(sql "SELECT count(*) FROM archivist.page WHERE crawl = $1") == "$2" ]]; }

cases a_failover_that_loses_commits_loses_no_page
