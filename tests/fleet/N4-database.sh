#!/bin/bash
# N4: PostgreSQL is killed, has no disk space, or does not answer. Accepted URLs are not lost, and all nodes continue by themselves.
source "$(dirname "$0")/lib.sh"

PAGES=42 SILENCE=900

# survives NAME SECONDS BREAK MEND: a crawl runs and another is added while the database is away for this time.
survives() {
    local name=$1 seconds=$2 crawl second began took
    crawl=$(add 1 "$name" $PAGES 14 300)
    wait_for 30 started "$name" 6
    eval "$3"
    began=$(now_ms)
    second=$(add 2 "$name-away" 12 12 0)
    took=$(($(now_ms) - began))
    # It does not come back before.
    ((took < $(times 20000 3000))) || fail "adding pages took $took ms while the database was away"
    sleep "$seconds"
    eval "$4"
    began=$(now_ms)
    wait_for $((LEASE * 2 + 90)) is_recorded "$crawl" $PAGES
    wait_for 60 is_recorded "$second" 12
    assert_recorded_once "$crawl" "$name" $PAGES
    assert_recorded_once "$second" "$name-away" 12
    assert_polite "$name(-away)?"
    figure "N4 $name: away for $seconds s, all recorded $(($(now_ms) - began)) ms after its return"
}

primary() { cat "$lab/primary"; }

a_killed_database_delays_no_page_by_more_than_its_absence() {
    survives killed 3 'database_kill "$(primary)"' 'database_start "$(primary)"'
    local longest slack=8000
    # In a short run, other capsules and the compiler use the same cores.
    [[ ${EXTENT-short} == full ]] || slack=20000
    longest=$(awk -v name="/killed-$run-" 'index($4, name) { if ($3 in last && $1 - last[$3] > most) most = $1 - last[$3]; last[$3] = $1 }
        END { printf "%d\n", most * 1000 }' "$lab/web.log")
    figure "N4 killed: longest time between two requests to a host $longest ms, delay=$DELAY ms"
    # In addition to the absence: the delay, the time until a client connects again, and the variation of starts.
    ((longest <= 3000 + DELAY + slack)) || fail "a host had no request for $longest ms"
}

a_database_that_is_away_for_longer_than_a_lease_loses_nothing() {
    survives silent "$SILENCE" 'network cut "$network" "$(primary)"' 'network mend "$network" "$(primary)"'
}

a_full_disk_loses_nothing() {
    survives full 6 'database_fill "$(primary)"' \
        'database_empty "$(primary)"; database_runs "$(primary)" || database_start "$(primary)"; database_wait "$(primary)"'
}

if [[ ${EXTENT-short} == full ]]; then
    cases a_killed_database_delays_no_page_by_more_than_its_absence a_database_that_is_away_for_longer_than_a_lease_loses_nothing \
        a_full_disk_loses_nothing
else
    cases a_killed_database_delays_no_page_by_more_than_its_absence
fi
