#!/bin/bash
# F14: very many units end at one instant while the orchestrator cannot hear it: it learns of every one. F15: one that does
# not come back to itself is replaced by the watchdog, and hooks do not notice.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 2 20) EACH=50 DEAF=5 WATCHDOG=5
HOOKS=$((PAGES * EACH))
watchdog=/run/systemd/system/$service.d/90-test.conf

clean() {
    in_capsule systemctl kill --kill-whom=main --signal=CONT $service 2>/dev/null || true
    in_capsule sh -c "rm -f $watchdog; systemctl daemon-reload"
    forget_configuration
}

# Every hook waits until a file is there and ends at once; they begin one after the other, being ready with their first line.
prepare() {
    put_tool
    many_hooks testwaits $EACH finite.bg.sh <<'SH'
#!/bin/bash
name=${0##*/}
echo ready
exec 3<>/srv/archivist-test/gate
read -r -n 1 <&3
echo "${name%.sh} end 0" >>story
SH
    configure <<'END'
[Orchestrator]
WorkersPerKind=20
WorkersMax=40
SnapshotsPerCrawl=20
END
}

running() { in_capsule systemctl list-units --plain --no-legend --state=running 'archivist-hook-testwaits*' | wc -l; }

# gated NAME: sets $crawl, whose hooks all wait at the gate.
gated() {
    in_capsule sh -c "rm -f $signs/gate; mkfifo -m 666 $signs/gate"
    crawl=$(pages "$PAGES" "$1" testwaits)
    wait_for 300 eval '(($(running) == HOOKS))'
}

open_gate() { in_capsule python3 -c "open('$signs/gate', 'r+b', buffering=0).write(b'x' * $HOOKS); import time; time.sleep(2)"; }

main_pid() { unit_property $service MainPID; }

ends_are_not_missed() {
    gated unheard
    in_capsule systemctl kill --kill-whom=main --signal=STOP $service
    open_gate
    sleep $DEAF # what is suffered
    assert_eq 0 "$(running)" "hooks that wait at an open gate"
    in_capsule systemctl kill --kill-whom=main --signal=CONT $service
    assert_outcomes "$crawl" "$HOOKS"
    figure "F14 units that ended unheard=$HOOKS $verdict"
    assert_nothing_is_left
}

the_watchdog_bites() {
    local pid before
    in_capsule sh -c "mkdir -p ${watchdog%/*}; printf '[Service]\nWatchdogSec=$WATCHDOG\n' >$watchdog; systemctl daemon-reload"
    restart
    gated frozen
    before=$(invocations)
    pid=$(main_pid)
    in_capsule systemctl kill --kill-whom=main --signal=STOP $service
    wait_for $((WATCHDOG * 4)) eval '[[ $(main_pid) != 0 && $(main_pid) != '"$pid"' ]]'
    wait_for 20 has_unit $service
    assert_eq "$before" "$(invocations)" "invocations of the hooks"
    open_gate
    assert_outcomes "$crawl" "$HOOKS"
    figure "F15 WatchdogSec=$WATCHDOG: replaced, hooks that ran on=$HOOKS $verdict"
    assert_nothing_is_left
}

invocations() { in_capsule systemctl show --property=InvocationID --value 'archivist-hook-testwaits*'; }

trap clean EXIT
prepare
ends_are_not_missed
the_watchdog_bites
trap - EXIT
clean
