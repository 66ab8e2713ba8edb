#!/bin/bash
# N2: processes of a node, or all of it, are stopped past the lease, and then continue. Nothing is recorded under a lease that has
# ended, and late units are stopped.
# In a full run alone.
source "$(dirname "$0")/lib.sh"

PAGES=42

# Watchdogs would end stopped services.
prepare() {
    prepare_lab
    each_node 'for unit in orchestrator fleet; do mkdir -p /run/systemd/system/archivist-$unit.service.d &&
        printf "[Service]\nWatchdogSec=0\n" >/run/systemd/system/archivist-$unit.service.d/90-lab.conf; done
        systemctl daemon-reload && systemctl restart archivist-orchestrator archivist-fleet'
}

clean() {
    each_node 'rm -f /run/systemd/system/archivist-*.service.d/90-lab.conf; systemctl daemon-reload
        systemctl restart archivist-orchestrator archivist-fleet'
}

each_node() {
    local n
    for n in "${NODES[@]}"; do on "$n" sh -c "$1"; done
}

send() {
    local signal=$1 unit
    shift
    for unit; do on "$victim" systemctl kill --kill-whom=main --signal="$signal" "archivist-$unit.service"; done
}

# survives NAME STOP CONTINUE: the node with the most leases, $victim, is stopped and continues by these commands.
survives() {
    local name=$1 crawl began victim
    crawl=$(add 1 "$name" $PAGES 14 1500)
    wait_for 30 started "$name" 3
    wait_for 30 some_node_holds
    victim=$(busiest)
    began=$(now_ms)
    eval "$2"
    wait_for $((LEASE * 3)) has_lost "$victim"
    # Some of the hosts have been visited by others.
    wait_for $((LEASE * 3)) visited_by_others "$name" "$began" "$victim"
    eval "$3"
    wait_for $((LEASE * 2 + 90)) is_recorded "$crawl" $PAGES
    assert_recorded_once "$crawl" "$name" $PAGES
    assert_polite "$name"
    wait_for 20 no_units "$victim"
}

has_lost() { ! holds "$1"; }

# visited_by_others NAME MS N: another node requested a page of a host that node N requested pages of before that time.
visited_by_others() { (($(taken_over_after "$2" "$1" "$3") > 0)); }

no_units() { [[ -z $(on "$1" systemctl list-units --plain --no-legend 'archivist-snapshot-*' 'archivist-hook-*') ]]; }

a_stopped_orchestrator_records_nothing_late() { survives orchestrator "send STOP orchestrator" "send CONT orchestrator"; }

a_stopped_fleet_service_records_nothing_late() { survives service "send STOP fleet" "send CONT fleet"; }

both_stopped_record_nothing_late() { survives both "send STOP orchestrator fleet" "send CONT orchestrator fleet"; }

# As when a virtual machine is paused.
a_stopped_machine_records_nothing_late() { survives machine "capsule freeze $network-\$victim" "capsule thaw $network-\$victim"; }

cases a_stopped_orchestrator_records_nothing_late a_stopped_fleet_service_records_nothing_late both_stopped_record_nothing_late \
    a_stopped_machine_records_nothing_late
