#!/bin/bash
# A running crawl survives when any process is killed, restarted or removed: it ends, no hook runs twice concurrently, and no
# page is lost.
# In a short run on every release.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

KILLS=5

clean() { forget_configuration; }

# Each hook of plugin testonce holds a lock and records its start and end; the kernel releases the lock of a killed
# hook, so a second start is an error only while the first one runs.
once() {
    cat <<SH
#!/bin/bash
exec 9>>lock-$1
flock -n 9 || { echo "overlap $1" >>story; exit 1; }
echo "start $1" >>story
echo ready
$2
echo "end $1" >>story
SH
}

prepare() {
    local tenths
    once beside "trap 'echo \"end beside\" >>story; exit 0' TERM; while :; do sleep 0.05; done" |
        plugin testonce on_Snapshot__10_beside.daemon.bg.sh
    for tenths in 5 6; do
        once "front$tenths" "sleep 0.$tenths" | plugin testonce "on_Snapshot__2${tenths}_front$tenths.sh"
    done
    plugin testhold <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
echo held >held.txt
SH
    configure <<'END'
[Orchestrator]
RetrySec=1s
RetryMaxSec=1s
AttemptsMax=30
END
}

# crawl_of COUNT NAME: adds a crawl of COUNT pages with plugin testonce.
crawl_of() {
    local n
    for ((n = 1; n <= $1; n++)); do echo "http://$2.test/$n"; done |
        in_capsule archivist add --json --plugins testonce - | evaluate '.crawl'
}

# assert_complete CRAWL PAGES: each hook of each page ended, and never ran twice concurrently. A hook whose end was not observed
# may have run again afterwards.
assert_complete() {
    wait_for 90 is_over "$1"
    assert_eq sealed "$(crawl_status "$1")" "status of $1"
    assert_eq "$2 sealed" "$(query '[length, (map(.status) | unique[])]' list snapshots "$1" --limit 0)" "snapshots of $1"
    assert_eq "$(($2 * 3)) succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$1" --limit 0)" "results of $1"
    local ends
    # shellcheck disable=SC2046 # a path a word
    ends=$(in_capsule grep -HE '^(end|overlap)' $(stories "$1"))
    [[ $ends != *overlap* ]] || fail "a hook ran twice at once: $ends"
    assert_eq $(($2 * 3)) "$(sort -u <<<"$ends" | wc -l)" "hooks that came to their end"
    figure "$1: $2 pages, $(($(wc -l <<<"$ends") - $2 * 3)) hooks ran again"
    assert_nothing_is_left
}

stories() { query 'map(.directory + "/testonce/story")' list snapshots "$1" --limit 0; }

# disturb TIMES COMMAND…: runs COMMAND as often, each time while hooks are running.
disturb() {
    local times=$1 n
    shift
    for ((n = 0; n < times; n++)); do
        wait_for 20 has_unit 'archivist-hook-testonce-front*'
        "$@"
    done
}

kill_orchestrator() {
    local pid
    pid=$(unit_property $service MainPID)
    in_capsule systemctl kill --kill-who=main --signal=KILL $service
    wait_for 20 is_started_again "$pid"
}

# The unit is active until systemd notices the end of the process, and then has no process for a moment.
is_started_again() {
    local pid
    pid=$(unit_property $service MainPID)
    [[ $pid != 0 && $pid != "$1" ]] && has_unit $service
}

# The process may have ended meanwhile.
kill_a_worker() {
    local unit
    unit=$(in_capsule systemctl list-units --plain --no-legend --state=running 'archivist-snapshot-*' | awk 'NR == 1 { print $1 }')
    in_capsule systemctl kill --kill-who=main --signal=KILL "$unit" 2>/dev/null || true
}

survives_kills_of_the_orchestrator() {
    local crawl
    crawl=$(crawl_of 24 kill)
    disturb $KILLS kill_orchestrator
    assert_complete "$crawl" 24
    assert_contains "$(journal -u $service)" "recovered: adopted" "words of the orchestrator"
    in_capsule systemctl reset-failed $service
}

survives_kills_of_workers() {
    local crawl
    crawl=$(crawl_of 6 worker)
    disturb 3 kill_a_worker
    in_capsule systemctl kill --kill-who=main --signal=KILL "archivist-crawl-${crawl#c}.service"
    assert_complete "$crawl" 6
}

# A page whose worker died precedes the pages of the queue, which have no browser tabs or other hooks that wait for their worker.
a_page_of_a_dead_worker_precedes_the_queue() {
    local crawl first limits=${drop_in%/*}/91-test.conf order='sort_by(.id | number) | map(select(.kind == "snapshot").owner)'
    in_capsule rm -f $signs/go
    printf '[Orchestrator]\nSnapshotsPerCrawl=1\n' | in_capsule sh -c "cat >$limits"
    restart
    crawl=$(add --plugins testhold http://queue.test/1 http://queue.test/2 http://queue.test/3 http://queue.test/4)
    wait_for 20 has_unit 'archivist-hook-testhold-s*.service'
    first=$(query 'min_by(.id | number).id | number' list snapshots "$crawl")
    in_capsule systemctl kill --kill-who=main --signal=KILL "archivist-snapshot-$first.service"
    wait_for 20 is_due_behind_another "$crawl" "s$first"
    in_capsule touch $signs/go
    wait_for 30 is_over "$crawl"
    assert_eq "s$first s$((first + 1)) s$first s$((first + 2)) s$((first + 3))" "$(query "$order" list runs "$crawl" --limit 0)" "workers in order"
    in_capsule rm "$limits"
    restart
    assert_nothing_is_left
}

# is_due_behind_another CRAWL PAGE: another page of the crawl has the only slot, and the time of the retry of this one has come.
is_due_behind_another() {
    [[ $(query "(map(select(.id == \"$2\")) | only | .status == \"queued\" and (.retry_at | seconds) < now) and any(.[]; .status == \"started\")" \
        list snapshots "$1") == true ]]
}

# hold NAME: sets $held, the id of a crawl whose hook waits; $snapshot is the number of its snapshot.
hold() {
    in_capsule rm -f $signs/go
    held=$(add --plugins testhold "http://held.test/$1")
    wait_for 20 has_unit 'archivist-hook-testhold-s*.service'
    snapshot=$(query '.[0].id | number' list snapshots "$held")
}

# The result of a killed hook is failed, with the reason, and can be retried.
survives_the_kill_of_a_hook() {
    hold killed
    in_capsule systemctl kill --signal=KILL "archivist-hook-testhold-s$snapshot.service"
    wait_for 20 is_over "$held"
    assert_eq "failed ended by SIGKILL" "$(query '.[0] | [.status, .error]' list results "$held")" "the killed hook"
    in_capsule touch $signs/go
    archivist retry "$held"
    wait_for 20 is_over "$held"
    assert_eq "succeeded" "$(query '.[0].status' list results "$held")" "the hook after a retry"
    assert_eq 2 "$(query 'map(select(.kind == "hook")) | length' list runs "$held")" "runs of the hook"
    assert_nothing_is_left
}

survives_restarts_of_everything() {
    local crawl command
    crawl=$(crawl_of 24 restart)
    for command in "restart $service" daemon-reload daemon-reexec "restart $service"; do
        # shellcheck disable=SC2086 # words
        disturb 1 in_capsule systemctl $command
    done
    assert_complete "$crawl" 24
}

# systemd 252 does not know all properties that it writes into the files of transient units: a unit with such a property
# loses its dependencies on a reload.
a_reload_leaves_running_units_whole() {
    hold reload
    in_capsule systemctl daemon-reload
    in_capsule systemctl stop archivist.slice
    ! has_unit "archivist-crawl-${held#c}.service" "archivist-snapshot-$snapshot.service" "archivist-hook-testhold-s$snapshot.service" ||
        fail "a unit outlived its slice"
    in_capsule touch $signs/go
    in_capsule systemctl start $service
    wait_for 30 is_over "$held"
    assert_nothing_is_left
}

survives_a_restart_of_the_bus() {
    local crawl
    crawl=$(crawl_of 8 bus)
    disturb 1 restart_bus
    wait_for 30 has_unit $service
    assert_complete "$crawl" 8
}

a_waiting_command_survives_a_restart_of_the_bus() {
    in_capsule rm -f $signs/go
    in_capsule systemd-run --quiet --unit=test-waiter --property=RemainAfterExit=yes \
        archivist add --wait --plugins testhold http://waiter.test/
    wait_for 20 has_unit 'archivist-hook-testhold-s*.service'
    restart_bus
    wait_for 30 has_unit $service
    in_capsule touch $signs/go
    wait_for 60 waiter_has_ended
    assert_eq 0 "$(unit_property test-waiter ExecMainStatus)" "exit status of add --wait"
    in_capsule systemctl stop test-waiter
    assert_nothing_is_left
}

# Commands that wait for a crawl start no orchestrator: only a call of a user does.
a_waiting_command_leaves_the_orchestrator_stopped() {
    local verb
    for verb in "add --wait" run; do
        in_capsule rm -f $signs/go
        in_capsule systemctl reset-failed $service
        # shellcheck disable=SC2086 # words of the verb
        in_capsule systemd-run --quiet --unit=test-waiter --property=RemainAfterExit=yes \
            archivist $verb --plugins testhold "http://stopped.test/${verb%% *}"
        wait_for 20 has_unit 'archivist-hook-testhold-s*.service'
        assert_status 0 in_capsule systemctl stop $service
        wait_for 20 waiter_says_that_it_waits
        assert_eq inactive "$(unit_property $service ActiveState)" "the orchestrator that was stopped, $verb"
        in_capsule systemctl start $service
        in_capsule touch $signs/go
        wait_for 60 waiter_has_ended
        assert_eq 0 "$(unit_property test-waiter ExecMainStatus)" "exit status of $verb"
        in_capsule systemctl stop test-waiter
        assert_nothing_is_left
    done
}

# By its process: archivist run enters a scope of its own.
waiter_says_that_it_waits() {
    in_capsule journalctl --quiet --no-pager --boot --output=cat _PID="$(unit_property test-waiter MainPID)" |
        grep --quiet "was stopped; to continue: systemctl start $service"
}

waiter_has_ended() { [[ $(unit_property test-waiter SubState) == exited ]]; }

# Installing the package again does not affect running hooks and workers.
a_reinstallation_keeps_running_hooks() {
    local before orchestrator
    hold reinstall
    orchestrator=$(unit_property $service InvocationID)
    before=$(invocations)
    apt_in_capsule install --reinstall "$(put_deb)"
    assert_eq "$before" "$(invocations)" "invocations of running units"
    [[ $orchestrator != "$(unit_property $service InvocationID)" ]] || fail "the orchestrator was not restarted"
    in_capsule touch $signs/go
    wait_for 30 is_over "$held"
    assert_eq "1 succeeded" "$(query '.[0] | [.attempts, .status]' list results "$held")" "the hook that was not disturbed"
    assert_nothing_is_left
}

invocations() {
    local unit
    for unit in "crawl-${held#c}" "snapshot-$snapshot" "hook-testhold-s$snapshot"; do
        unit_property "archivist-$unit.service" InvocationID
    done
}

a_reboot_is_a_pause() {
    local crawl
    hold reboot
    crawl=$(crawl_of 12 reboot)
    disturb 1 true
    capsule reboot "$CAPSULE"
    in_capsule touch $signs/go
    assert_complete "$crawl" 12
    wait_for 30 is_over "$held"
    assert_eq "1 succeeded" "$(query '.[0] | [.attempts, .status]' list results "$held")" "the hook that the reboot ended"
    assert_nothing_is_left
}

# The directory for temporary files of each service is removed with them.
survives_the_removal_of_temporary_files() {
    local crawl
    in_capsule sh -c 'rm -rf /tmp/* /var/tmp/*'
    crawl=$(crawl_of 2 cleared)
    assert_complete "$crawl" 2
    assert_status 0 archivist cancel "$(add --plugins testhold http://cleared.test/)"
    assert_status 0 archivist retry --all "$crawl"
    wait_for 60 is_over "$crawl"
}

cases survives_kills_of_the_orchestrator survives_kills_of_workers a_page_of_a_dead_worker_precedes_the_queue survives_the_kill_of_a_hook \
    survives_restarts_of_everything a_reload_leaves_running_units_whole survives_a_restart_of_the_bus \
    a_waiting_command_survives_a_restart_of_the_bus a_waiting_command_leaves_the_orchestrator_stopped a_reinstallation_keeps_running_hooks \
    survives_the_removal_of_temporary_files a_reboot_is_a_pause
