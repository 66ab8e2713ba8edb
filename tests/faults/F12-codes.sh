#!/bin/bash
# F12: many concurrent hooks with different exit statuses: the run of each has its own. F13: failed hooks
# leave no failed units, and the memory of PID 1 does not grow with their number.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 30 1000) HOOKS=10

clean() { forget_configuration; }

# Resident memory of PID 1 in KiB.
memory() { in_capsule awk '/^VmRSS:/ { print $2 }' /proc/1/status; }

failed_units() { in_capsule systemctl list-units --failed --plain --no-legend | wc -l; }

prepare() {
    put_tool
    hooks_with_codes $HOOKS
    many_hooks testfail $HOOKS <<'SH'
#!/bin/sh
exit 1
SH
    configure <<'END'
[Orchestrator]
WorkersPerKind=32
WorkersMax=64
SnapshotsPerCrawl=32
HostWorkers=32
END
}

no_status_is_mistaken() {
    local crawl
    crawl=$(pages "$PAGES" codes testcode)
    assert_outcomes "$crawl" $((PAGES * HOOKS))
    figure "F12 hooks=$((PAGES * HOOKS)) $verdict"
    assert_nothing_is_left
}

failures_leave_nothing_in_the_manager() {
    local PAGES crawl before left after
    PAGES=$(times 30 2000)
    before=$(memory)
    crawl=$(pages "$PAGES" failing testfail)
    finish "$crawl" 1800
    left=$(failed_units) after=$(memory)
    assert_eq "$((PAGES * HOOKS)) failed" "$(query '[length, (map(.status) | unique[])]' list results "$crawl" --limit 0)" "results"
    figure "F13 failing hooks=$((PAGES * HOOKS)) failed units left=$left PID 1 grew by $((after - before)) KiB"
    assert_eq 0 "$left" "failed units"
    ((after - before < 5120)) || fail "PID 1 grew by $((after - before)) KiB"
    assert_nothing_is_left
}

cases no_status_is_mistaken failures_leave_nothing_in_the_manager
