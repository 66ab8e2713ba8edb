#!/bin/bash
# Hosts that change hands: a node that drains starts no page after the answer, nodes without work get hosts of the one that has
# all, and a cancelled page of a node without power is named, and not fetched when it is back.
source "$(dirname "$0")/lib.sh"

# A page that runs at the time of the answer has requested its URL within this time, in milliseconds.
RUNNING=2500

drains_at_once() {
    local crawl answered late
    crawl=$(add 1 drain 72 12 1500)
    wait_for 60 holds 1
    wait_for 30 started drain 12
    assert_contains "$(on 1 archivist fleet drain)" "node 'n1' starts no more pages" "what drain says"
    answered=$(now_ms)
    wait_for 20 holds_none 1
    figure "N10 drain: its hosts were released after $(($(now_ms) - answered)) ms"
    wait_for 120 is_recorded "$crawl" 72
    late=$(awk -v since=$((answered + RUNNING)) -v name="/drain-$run-" \
        'index($4, name) && $2 == "10.77.0.1" && $1 * 1000 > since' "$lab/web.log")
    assert_eq "" "$late" "requests of the draining node after the answer"
    on 1 archivist fleet drain --undo
    assert_recorded_once "$crawl" drain 72
    assert_polite drain
}

holds_none() { ! holds "$1"; }

shares_hosts_with_idle_nodes() {
    local crawl began
    on 1 archivist fleet drain n2
    on 1 archivist fleet drain n3
    crawl=$(add 1 share 144 12 500)
    wait_for 60 holds_many 1 6
    on 1 archivist fleet drain --undo n2
    on 1 archivist fleet drain --undo n3
    began=$(now_ms)
    wait_for 60 holds_many 2 2
    wait_for 60 holds_many 3 2
    figure "N10 share: two idle nodes had hosts after $(($(now_ms) - began)) ms"
    wait_for 240 is_recorded "$crawl" 144
    assert_recorded_once "$crawl" share 144
    assert_polite share
}

# holds_many N LEAST
holds_many() { (($(holders | grep -c "^n$1 ") >= $2)); }

names_what_a_lost_node_holds() {
    local crawl said back
    # The pages of a lost node end with its leases, so these must be longer than the time after which it is named.
    sql "UPDATE archivist.fleet SET lease_ms = 60000"
    crawl=$(add 1 cancel 96 12 1000)
    wait_for 60 holds 2
    wait_for 30 started cancel 12
    wait_for 60 is_leased_for 2 40
    power_off 2
    said=$(on 1 timeout 60 archivist cancel --wait "c$crawl" 2>&1) && fail "cancel --wait succeeded: $said"
    assert_contains "$said" "node 'n2', which was not seen for" "what cancel says"
    back=$(now_ms)
    power_on 2
    wait_for 120 is_recorded "$crawl" 96
    assert_eq "" "$(awk -v since="$back" -v name="/cancel-$run-" \
        'index($4, name) && $2 == "10.77.0.2" && $1 * 1000 > since' "$lab/web.log")" "requests of the node that is back"
    assert_polite cancel
}

# is_leased_for N SECONDS: all leases of a node last that long.
is_leased_for() {
    [[ $(sql "SELECT bool_and(h.lease_until > archivist.clock() + interval '$2 s') FROM archivist.host h
        JOIN archivist.node n ON n.id = h.owner WHERE n.name = 'n$1' AND h.due_at IS NULL") == t ]]
}

cases drains_at_once shares_hosts_with_idle_nodes names_what_a_lost_node_holds
