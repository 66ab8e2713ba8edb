#!/bin/bash
# F14: very many units end at once while the orchestrator is frozen: it records the end of each. F15: an orchestrator that
# stays frozen is restarted by the watchdog, without effect on hooks.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 2 20) EACH=50 DEAF=5 WATCHDOG=5
HOOKS=$((PAGES * EACH))
watchdog=/run/systemd/system/$service.d/90-test.conf

clean() {
    in_capsule systemctl kill --kill-whom=main --signal=CONT $service 2>/dev/null || true
    in_capsule sh -c "rm -f $watchdog; systemctl daemon-reload"
    forget_configuration
}

prepare() {
    put_tool
    hooks_at_a_gate $EACH
    configure <<'END'
[Orchestrator]
WorkersPerKind=20
WorkersMax=40
SnapshotsPerCrawl=20
HostWorkers=20
[Hooks]
TimeoutSec=10min
END
}

main_pid() { unit_property $service MainPID; }

ends_are_not_missed() {
    gated "$PAGES" unheard "$HOOKS"
    in_capsule systemctl kill --kill-whom=main --signal=STOP $service
    open_gate "$HOOKS"
    sleep $DEAF # what is suffered
    in_capsule systemctl kill --kill-whom=main --signal=CONT $service
    assert_outcomes "$crawl" "$HOOKS"
    figure "F14 units that ended unheard=$HOOKS $verdict"
    assert_nothing_is_left
}

the_watchdog_bites() {
    local pid before
    in_capsule sh -c "mkdir -p ${watchdog%/*}; printf '[Service]\nWatchdogSec=$WATCHDOG\n' >$watchdog; systemctl daemon-reload"
    restart
    gated "$PAGES" frozen "$HOOKS"
    before=$(invocations)
    pid=$(main_pid)
    in_capsule systemctl kill --kill-whom=main --signal=STOP $service
    wait_for $((WATCHDOG * 4)) eval '[[ $(main_pid) != 0 && $(main_pid) != '"$pid"' ]]'
    wait_for 20 has_unit $service
    assert_eq "$before" "$(invocations)" "invocations of the hooks"
    open_gate "$HOOKS"
    assert_outcomes "$crawl" "$HOOKS"
    figure "F15 WatchdogSec=$WATCHDOG: replaced, hooks that ran on=$HOOKS $verdict"
    assert_nothing_is_left
}

cases ends_are_not_missed the_watchdog_bites
