#!/bin/bash
# How many pages per minute three nodes archive that wait for a slow server, compared with one of them. Fails only if pages are lost.
# It is no part of tests/run: times say nothing while something else runs.
source "$(dirname "$0")/lib.sh"

# Each node has two slots. Longer than what a page costs the processor, which the nodes of a lab share.
WAIT=6000 PAGES_PER_NODE=24
speed=/etc/archivist/archivist.conf.d/95-speed.conf

prepare() {
    prepare_lab
    DELAY=0
    each "printf '[Orchestrator]\nHostDelaySec=0\n' >$speed && systemctl restart archivist-orchestrator archivist-fleet"
}

clean() {
    each "rm -f $speed; systemctl restart archivist-orchestrator archivist-fleet"
}

each() {
    local n
    for n in "${NODES[@]}"; do on "$n" sh -c "$1"; done
}

# pages_per_minute NAME PAGES: prints the rate, of the log of the server, in thousandths.
pages_per_minute() {
    local crawl
    crawl=$(add 1 "$1" "$2" 24 $WAIT)
    wait_for 400 is_recorded "$crawl" "$2"
    assert_recorded_once "$crawl" "$1" "$2"
    awk -v name="/$1-$run-" -v ms=$WAIT 'index($4, name) { if (!first) first = $1; last = $1; pages++ }
        END { printf "%d\n", pages * 60000 / (last - first + ms / 1000) }' "$lab/web.log"
}

three_nodes_compared_with_one() {
    local one three
    for n in 2 3; do on $n systemctl stop archivist-fleet; done
    one=$(pages_per_minute one $PAGES_PER_NODE)
    for n in 2 3; do on $n systemctl start archivist-fleet; done
    three=$(pages_per_minute three $((3 * PAGES_PER_NODE)))
    figure "pages per minute: one node $((one / 1000)).$((one % 1000 / 100)), three nodes $((three / 1000)).$((three % 1000 / 100)), ratio $((three * 100 / one))/100"
    figure "pages of three nodes by node: $(awk -v name="/three-$run-" 'index($4, name) { print $2 }' "$lab/web.log" | sort | uniq -c | awk '{ print $2 "=" $1 }' | paste -sd ' ')"
}

cases three_nodes_compared_with_one
