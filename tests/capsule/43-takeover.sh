#!/bin/bash
# Several orchestrators use one data directory: the newest works, the others stand by and continue when it ends. Running units
# are not disturbed, and an orchestrator that was frozen meanwhile writes nothing when it is thawed. This is fault F7; the last
# line has its figures.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

ROUNDS=3
TOOK_OVER='a newer process took over orchestrator, database, bus name org.archivist1'

clean() {
    in_capsule sh -c "for file in $signs/*.pid; do kill -CONT \$(cat \$file); kill -KILL \$(cat \$file); done" 2>/dev/null || true
    forget_configuration
}

prepare() {
    plugin testhold <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
echo held >held.txt
SH
    plugin testbrief <<'SH'
#!/bin/sh
echo start >>story
sleep 0.3
echo end >>story
SH
    configure <<'END_OF_FILE'
[Orchestrator]
RetrySec=1s
RetryMaxSec=1s
IdleTimeoutSec=1s
END_OF_FILE
    in_capsule chmod 755 $signs
}

# note EVENT…, times_of EVENT: counts over all cases.
note() { printf '%s\n' "$@" >>"$work/events"; }
times_of() { grep -cx "$1" "$work/events" || true; }

# by_hand NAME [PREFIX…] [-- OPTION…]: starts an orchestrator outside a unit; its messages are in $signs/NAME.log, its
# pid as the capsule sees it in $signs/NAME.pid.
by_hand() {
    local name=$1 prefix=()
    shift
    while [[ $# -gt 0 && $1 != -- ]]; do prefix+=("$1"); shift; done
    [[ $# -eq 0 ]] || shift
    in_capsule sh -c 'name=$1; shift; setsid "$@" >'$signs'/$name.log 2>&1 </dev/null & echo $! >'$signs'/$name.pid' - \
        "$name" "${prefix[@]}" archivist orchestrator "$@"
}

said() { in_capsule cat "$signs/$1.log"; }

# active WHAT: prints a property of the active orchestrator; waiting: prints the number of waiting ones.
active() { query "[.runners[] | select(.state == \"active\")][0].$1" status; }
waiting() { query '[.runners[] | select(.state == "waiting")] | length' status; }

pid_of() { in_capsule cat "$signs/$1.pid"; }
service_pid() { unit_property $service MainPID; }

works() { [[ $(active pid) == "$1" ]]; }
stands_by() { [[ $(unit_property $service StatusText) == "standing by: pid="* ]]; }
service_works() { has_unit $service && [[ $(active unit) == "$service" ]]; }
alive() { in_capsule kill -0 "$1" 2>/dev/null; }
gone() { ! alive "$1"; }

hold() {
    in_capsule rm -f $signs/go
    held=$(add --plugins testhold "http://held.test/$1")
    wait_for 20 has_unit 'archivist-hook-testhold-s*.service'
    snapshot=$(query '.[0].id | number' list snapshots "$held")
}

invocations() {
    local unit
    for unit in "crawl-${held#c}" "snapshot-$snapshot" "hook-testhold-s$snapshot"; do
        unit_property "archivist-$unit.service" InvocationID
    done
}

# release_hooks: lets the held hook end, and checks that it succeeded at its first attempt.
release_hooks() {
    in_capsule touch $signs/go
    wait_for 30 is_over "$held"
    assert_eq "1 succeeded" "$(query '.[0] | [.attempts, .status]' list results "$held")" "the hook under two orchestrators"
}

# stale_writes: runs that were recorded under an epoch after one was recorded under a later epoch.
stale_writes() {
    in_capsule python3 -c 'import sqlite3
db = sqlite3.connect("file:/var/lib/archivist/archivist.sqlite3?mode=ro", uri=True)
print(db.execute("SELECT count(*) FROM run a WHERE EXISTS (SELECT 1 FROM run b WHERE b.id < a.id AND b.epoch > a.epoch)").fetchone()[0])'
}

count_said() { grep -c "$TOOK_OVER" || true; }

a_second_one_takes_over_and_gives_back() {
    local before invocation
    hold second
    before=$(invocations)
    invocation=$(unit_property $service InvocationID)
    by_hand second
    wait_for 10 works "$(pid_of second)"
    note takeover
    wait_for 10 stands_by
    wait_for 10 test "$(waiting)" = 1
    assert_contains "$(archivist status)" "waiting, $service (pid $(service_pid))" "the table of status"
    assert_eq "$before" "$(invocations)" "invocations of running units"
    assert_eq 1 "$(journal -u $service _SYSTEMD_INVOCATION_ID="$invocation" | count_said)" "announcements"
    assert_contains "$(journal -u $service)" "(pid=$(pid_of second), archivist-run-" "the announcement"

    # SIGKILL: the older orchestrator continues at once and adopts the running units.
    in_capsule kill -KILL "$(pid_of second)"
    wait_for 5 service_works
    assert_eq "$before" "$(invocations)" "invocations of running units"
    release_hooks
}

# An orchestrator that does not stop is killed with its cgroup after 5 s, even if it is frozen; the newer one answers status
# meanwhile. Calls without an answer are made again to the newer one, except calls that could take effect twice: these fail with
# the reason.
a_frozen_one_is_replaced() {
    local began pid
    hold frozen
    pid=$(service_pid)
    in_capsule kill -STOP "$pid"
    listen
    in_capsule sh -c "archivist status >$signs/status.out" &
    in_capsule sh -c "archivist add http://unknown.test/ 2>$signs/add.out; echo \$? >>$signs/add.out" &
    wait_for 10 hears Status
    wait_for 10 hears Add
    began=$EPOCHSECONDS
    by_hand thaw
    wait_for 4 in_capsule grep -q "waiting for pid=$pid, $service to stop" $signs/status.out
    wait_for 4 status_says "waiting for pid=$pid, $service to stop"
    assert_eq 1 "$(waiting)" "runners that wait"
    wait_for 20 works "$(pid_of thaw)"
    note takeover
    ((EPOCHSECONDS - began >= 4)) || fail "killed after $((EPOCHSECONDS - began)) s"
    gone "$pid" || fail "the frozen runner is there still"
    wait
    in_capsule kill "$(pid_of monitor)"
    assert_contains "$(in_capsule cat $signs/add.out)" "it is unknown whether the call took effect" "the message of add"
    assert_eq 4 "$(in_capsule tail -n 1 $signs/add.out)" "exit status of add"
    wait_for 10 stands_by
    assert_contains "$(said thaw)" "did not stop, killing it" "words about the kill"
    # The newer orchestrator exits normally: the service continues.
    in_capsule kill -TERM "$(pid_of thaw)"
    wait_for 5 service_works
    release_hooks
}

# Starts to record all calls of the orchestrator, for hears.
listen() {
    in_capsule sh -c 'busctl --json=short --match=type=method_call,interface=org.archivist1.Manager monitor \
        >$1/monitor.out 2>&1 </dev/null & echo $! >$1/monitor.pid' - $signs
    wait_for 10 listens
}

# The bus itself has no such method, and answers so.
listens() {
    in_capsule busctl call org.freedesktop.DBus / org.archivist1.Manager Probe >/dev/null 2>&1 || true
    hears Probe
}

# hears METHOD: whether METHOD was called, answered or not.
hears() { in_capsule grep -q "\"member\":\"$1\"" $signs/monitor.out; }

# freeze_amid_a_transaction PID CRAWL: freezes PID while it holds the write lock of the database (byte 120 of the WAL
# index). Meanwhile, repeated calls set settings of CRAWL to the same values, so that transactions never stop.
freeze_amid_a_transaction() {
    in_capsule touch "$signs/talk"
    in_capsule sh -c 'while [ -e "$2/talk" ]; do archivist retry "$1" --set TIMEOUT=60; done' - "$2" "$signs" >/dev/null 2>&1 &
    in_capsule timeout 20 sh -c 'while kill -STOP "$1"; do
        ! grep -q "WRITE $1 .* 120 120\$" /proc/locks || exit 0
        kill -CONT "$1"
    done; exit 1' - "$1" || fail "no transaction was met"
    in_capsule rm "$signs/talk"
}

pages() { for n in 1 2 3 4 5 6 7 8; do echo "http://$1.test/$n"; done | add --plugins testbrief -; }

# An orchestrator frozen in a transaction holds the write lock, so its successor cannot write either.
one_frozen_amid_a_transaction_is_replaced() {
    local crawl pid
    pid=$(service_pid)
    crawl=$(pages transaction)
    freeze_amid_a_transaction "$pid" "$crawl"
    by_hand amid
    wait_for 30 has_said amid "did not stop, killing it"
    wait_for 10 works "$(pid_of amid)"
    note takeover amid
    gone "$pid" || fail "the frozen runner is there still"
    wait_for 60 is_over "$crawl"
    assert_eq "8 succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$crawl")" "results of $crawl"
    in_capsule kill -TERM "$(pid_of amid)"
    wait_for 5 service_works
}

has_said() { [[ $(said "$1") == *"$2"* ]]; }

status_says() { [[ $(archivist status) == *"$1"* ]]; }

# An orchestrator in another PID namespace is requested to stop and logged, never killed; its writes after a freeze are refused.
a_stranger_is_not_killed() {
    local round pid crawl
    for ((round = 1; round <= ROUNDS; round++)); do
        in_capsule rm -f "$signs"/stranger.*
        by_hand stranger unshare --pid --fork --kill-child
        wait_for 10 active_elsewhere
        note takeover
        # An orchestrator that starts while systemd restarts the service stands by.
        wait_for 10 stands_by
        pid=$(in_capsule pgrep --parent "$(pid_of stranger)")
        crawl=$(pages "stranger$round")
        wait_for 20 has_unit 'archivist-hook-testbrief-s*.service'
        # In the last round the frozen process holds the write lock and must not be killed.
        if ((round < ROUNDS)); then in_capsule kill -STOP "$pid"; else freeze_amid_a_transaction "$pid" "$crawl"; fi
        in_capsule systemctl restart --no-block $service
        wait_for 20 passes_or_cannot
        alive "$pid" || fail "a runner in another PID namespace was killed"
        in_capsule kill -CONT "$pid"
        wait_for 20 service_works
        note takeover
        wait_for 10 has_announced stranger
        wait_for 60 is_over "$crawl"
        assert_eq "8 succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$crawl")" "results of $crawl"
        assert_eq 0 "$(stale_writes)" "writes with a stale epoch"
        alive "$pid" || fail "a runner in another PID namespace ended"
        in_capsule kill -TERM "$pid"
        wait_for 10 gone "$pid"
    done
    assert_contains "$(journal -u $service)" \
        "an orchestrator in another PID namespace (pid=1" "the warning"
}

# It is the first process of its own namespace.
active_elsewhere() { works 1; }
# If the frozen process holds the write lock and must not be killed, the service waits until it continues.
passes_or_cannot() {
    local line
    line=$(unit_property $service StatusText)
    if [[ $line == *"in a transaction" ]]; then note amid; return; fi
    has_unit $service && [[ $line != "standing by"* && $line != "waiting for"* ]]
}

has_announced() { [[ $(said "$1" | count_said) -ge 1 ]]; }

# A command in the foreground stands by under a newer orchestrator, reports that once, continues, and exits when its crawl ends.
a_foreground_command_stands_by() {
    local pid
    in_capsule rm -f $signs/go
    in_capsule sh -c "archivist run --plugins testhold http://held.test/foreground >$signs/run.out 2>$signs/run.log </dev/null; \
        echo \$? >$signs/run.status" &
    wait_for 20 has_unit 'archivist-hook-testhold-s*.service'
    by_hand newer
    wait_for 10 has_announced_to_the_command
    note takeover
    in_capsule kill -KILL "$(pid_of newer)"
    wait_for 5 service_works
    wait_for 10 holds_again
    by_hand newest
    wait_for 10 works "$(pid_of newest)"
    note takeover
    in_capsule touch $signs/go
    wait_for 30 in_capsule test -e $signs/run.status
    wait
    assert_eq 0 "$(in_capsule cat $signs/run.status)" "exit status of archivist run"
    assert_eq "1 1" "$(in_capsule grep -c "$TOOK_OVER (pid=$(pid_of newer)," $signs/run.log) $(
        in_capsule grep -c "$TOOK_OVER (pid=$(pid_of newest)," $signs/run.log)" "announcements to the command"
    works "$(pid_of newest)" || fail "the command waited for the newest runner to end"
    in_capsule kill -TERM "$(pid_of newest)"
    wait_for 5 service_works
}

has_announced_to_the_command() { in_capsule grep -q "$TOOK_OVER" $signs/run.log; }
holds_again() { [[ $(query '.[-1].status' list crawls --limit 1) == started ]]; }

hook_is() { [[ $(unit_property "archivist-hook-testhold-s$snapshot.service" FreezerState) == "$1" ]]; }

# Hooks that an older orchestrator froze stay frozen until the newer one resumes them.
what_is_paused_stays_so() {
    hold paused
    assert_status 0 archivist pause "$held"
    wait_for 10 hook_is frozen
    by_hand pauses
    wait_for 10 works "$(pid_of pauses)"
    note takeover
    hook_is frozen || fail "the hook of a paused crawl goes on under the next runner"
    assert_eq paused "$(query '.[0].status' list crawls "$held")" "the crawl under the next runner"
    assert_status 0 archivist resume "$held"
    wait_for 10 hook_is running
    release_hooks
    in_capsule kill -TERM "$(pid_of pauses)"
    wait_for 5 service_works
}

# An orchestrator with --exit-on-idle exits when the queue is empty, also while it stands by.
an_idle_one_leaves_its_standby() {
    hold leaving
    by_hand leaving -- --exit-on-idle
    wait_for 10 works "$(pid_of leaving)"
    # A restart before systemd has restarted the service by itself starts it twice, and both take over.
    wait_for 10 stands_by
    restart
    wait_for 10 service_works
    note takeover takeover
    alive "$(pid_of leaving)" || fail "it did not stand by"
    release_hooks
    wait_for 10 gone "$(pid_of leaving)"
    assert_eq 1 "$(said leaving | count_said)" "announcements"
    assert_contains "$(said leaving)" "all work complete, exiting" "last words"
    service_works || fail "the service does not work"
}

# The last case prints the figures of the others.
writes_nothing_stale() {
    local stale
    stale=$(stale_writes)
    figure "F7: $(times_of takeover) takeovers ($((ROUNDS + 2)) of a frozen runner, $ROUNDS of these in another PID namespace," \
        "$(times_of amid) amid a transaction), writes with a stale epoch: $stale"
    assert_eq 0 "$stale" "writes with a stale epoch"
}

cases a_second_one_takes_over_and_gives_back a_frozen_one_is_replaced one_frozen_amid_a_transaction_is_replaced \
    a_stranger_is_not_killed a_foreground_command_stands_by what_is_paused_stays_so an_idle_one_leaves_its_standby \
    writes_nothing_stale
