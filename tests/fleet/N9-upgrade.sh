#!/bin/bash
# N9: a node is upgraded in mid-crawl, while the others run the older version; a newer version migrates the schema while all nodes run
# the older one. No page is lost.
# In a full run alone.
source "$(dirname "$0")/lib.sh"

PAGES=42

an_upgrade_with_running_work_loses_no_page() {
    local crawl victim fleet
    fleet=$(fleet_deb "$DEB")
    # The nodes run the same programs, or those of OLDER_DEB if it is set.
    repack "$work/newer" "+lab$EPOCHSECONDS" "$DEB" "$fleet"
    crawl=$(add 1 upgrade $PAGES 14 1000)
    wait_for 30 started upgrade 6
    wait_for 30 some_node_holds
    victim=$(busiest)
    capsule cp "$work/newer" "$network-$victim:/var/cache/newer"
    on "$victim" env DEBIAN_FRONTEND=noninteractive dpkg --install --recursive /var/cache/newer
    assert_eq 2 "$(on "$victim" dpkg-query --show archivist archivist-fleet | grep -c +lab)" "packages of the version on node $victim"
    wait_for $((LEASE + 90)) is_recorded "$crawl" $PAGES
    assert_recorded_once "$crawl" upgrade $PAGES
    assert_polite upgrade
    wait_for 20 connected "$victim"
    figure "N9 attempts of the pages: $(sql "SELECT attempts, count(*) FROM archivist.page WHERE crawl = $crawl GROUP BY 1 ORDER BY 1" | paste -sd ' ')"
}

# The next step of the schema, as a program of the next version would note it, excludes this one until the nodes are upgraded.
a_newer_schema_stops_older_nodes_and_loses_no_page() {
    local crawl late n known next
    known=$(sql "SELECT max(version) FROM archivist.migration")
    next=$((known + 1))
    crawl=$(add 1 schema $PAGES 14 1000)
    wait_for 30 started schema 6
    sql "INSERT INTO archivist.migration (version, programs_from) VALUES ($next, $next); UPDATE archivist.node SET incarnation = incarnation + 1"
    for n in "${NODES[@]}"; do wait_for 30 is_excluded "$n"; done
    late=$(add 2 late 4 4 100)
    wait_for $((LEASE + 30)) no_page_runs
    sql "UPDATE archivist.migration SET programs_from = 1 WHERE version = $next"
    wait_for $((LEASE + 90)) is_recorded "$crawl" $PAGES
    wait_for 60 is_recorded "$late" 4
    assert_recorded_once "$crawl" schema $PAGES
    assert_recorded_once "$late" late 4
    assert_polite schema
    sql "DELETE FROM archivist.migration WHERE version = $next"
}

# is_excluded N: the node names the versions $next and $known.
is_excluded() {
    [[ $(on "$1" systemctl status archivist-fleet.service) == *"its schema is version $next, and this program knows versions up to $known"* ]]
}

no_page_runs() {
    local n
    for n in "${NODES[@]}"; do [[ -z $(on "$n" systemctl list-units --plain --no-legend --state=running 'archivist-snapshot-*') ]] || return 1; done
}

connected() { [[ $(sql "SELECT NOT ended AND seen > archivist.clock() - interval '10 s' FROM archivist.node WHERE name = 'n$1'") == t ]]; }

cases an_upgrade_with_running_work_loses_no_page a_newer_schema_stops_older_nodes_and_loses_no_page
