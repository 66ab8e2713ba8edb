#!/bin/bash
# F20: workers of a pool constantly crash, hang, ignore SIGTERM and leave children behind, while the
# orchestrator is stopped: every slot is alive in the end, and a stop leaves no process and restarts no worker.
source "$(dirname "$0")/lib.sh"

WORKERS=$(times 6 16) SECONDS_OF_IT=$(times 25 600) POOL=testchaos STATE=/run/test-chaos

clean() {
    in_capsule sh -c "archivist pool remove $POOL 2>/dev/null; rm -rf $STATE; systemctl daemon-reload; systemctl start $service" || true
    purge_pools
}

prepare() {
    install_pools
    in_capsule sh -c "systemctl stop $service; mkdir -p $STATE /opt/pools; seq -f $STATE/mode%g 0 $((WORKERS - 1)) | xargs -n 1 sh -c 'echo random >\$0'"
    capsule cp "$ROOT/tests/capsule/pools/worker.py" "$CAPSULE:/opt/pools/worker.py"
    cursor=$(in_capsule journalctl --quiet -n 0 --show-cursor | sed 's/^-- cursor: //')
}

ask() { query "$1" pool status $POOL; }

is_whole() { [[ $(ask '.running == .declared and all(.workers[]; field("last_beat") != null)') == true ]]; }

# Number of ends of this kind, from the journal.
count() { in_capsule journalctl --quiet --no-pager --output=cat --after-cursor="$cursor" _PID=1 "--unit=archivist-pool-$POOL@*" | grep -c "$1" || true; }

processes() { in_capsule sh -c "cat /sys/fs/cgroup/archivist.slice/archivist-pool.slice/archivist-pool-$POOL.slice/*/cgroup.procs 2>/dev/null || true" | wc -l; }

every_slot_is_alive_and_a_stop_is_final() {
    local died hung deaf began took left again
    archivist pool add $POOL -n "$WORKERS" --set HeartbeatSec=2s --set StopSec=1s --set RestartMaxSec=3s --now -- /usr/bin/python3 /opt/pools/worker.py $STATE
    in_capsule sleep "$SECONDS_OF_IT"
    assert_nothing "abandoned workers" ask '.workers | map(select(.state == "failed").unit)'
    in_capsule touch $STATE/calm
    wait_for 30 is_whole
    died=$(count 'Failed with result') hung=$(count 'Watchdog timeout') deaf=$(count "Failed with result 'timeout'\|State 'stop-watchdog' timed out\|State 'stop-sigterm' timed out")
    in_capsule rm $STATE/calm
    in_capsule sleep 2
    began=$(in_capsule date +%s%N)
    archivist pool stop $POOL
    took=$((($(in_capsule date +%s%N) - began) / 1000000))
    left=$(processes)
    # A worker that died before the stop may be started until the stop reaches it.
    in_capsule journalctl --sync
    cursor=$(in_capsule journalctl --quiet -n 0 --show-cursor | sed 's/^-- cursor: //')
    in_capsule sleep 4
    again=$(count '^Started ')
    figure "F20 workers=$WORKERS seconds=$SECONDS_OF_IT alive at the end=$WORKERS died=$died hung=$hung deaf=$deaf; stop took $took ms, processes left=$left started again=$again"
    ((died > 3)) || fail "only $died workers died: that is no test"
    assert_eq "0 0" "$left $again" "processes left by the stop, workers started again after it"
    assert_eq inactive "$(in_capsule systemctl is-active $service || true)" "the orchestrator, all the while"
}

cases every_slot_is_alive_and_a_stop_is_final
