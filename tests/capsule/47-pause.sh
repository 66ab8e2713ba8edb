#!/bin/bash
# A pause: hooks are frozen, workers answer their watchdog, nothing new starts, and everything continues after a resume, a
# restart or a reboot. Cancelling ends frozen hooks at once.
# In a short run early, because it takes minutes.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

clean() { forget_configuration; }

prepare() {
    # Counts in a file, and starts children that leave its session.
    plugin testcount <<'SH'
#!/bin/bash
trap 'echo term >>story; exit 0' TERM
setsid sh -c 'while :; do sleep 0.1; done' >/dev/null 2>&1 &
until [ -e /srv/archivist-test/go ]; do echo . >>ticks; sleep 0.05; done
kill $!
echo done >>story
SH
    plugin testafter on_Snapshot__30_after.sh <<'SH'
#!/bin/sh
echo after >after.txt
SH
    configure <<'END'
[Orchestrator]
RetrySec=1s
RetryMaxSec=1s
SnapshotsPerCrawl=1
END
}

frozen() {
    [[ $(unit_property "$1" FreezerState) == frozen ]] &&
        in_capsule grep -qx 'frozen 1' "/sys/fs/cgroup/$(unit_property "$1" ControlGroup)/cgroup.events"
}

ticks() { in_capsule sh -c "wc -c <$dir/testcount/ticks"; }

has_ticked() { [[ $(ticks) -gt ${1-0} ]]; }

# begin NAME [OPTION…]: adds a crawl, waits for its hook, and sets $crawl, $hook and $dir.
begin() {
    local name=$1
    shift
    in_capsule rm -f $signs/go
    crawl=$(printf 'http://pause.test/%s\n' "$name-1" "$name-2" |
        in_capsule archivist add --json --plugins testcount,testafter "$@" - | evaluate '.crawl')
    wait_for 20 has_unit 'archivist-hook-testcount-s*.service'
    hook=$(in_capsule systemctl list-units --plain --no-legend 'archivist-hook-testcount-s*.service' | awk '{ print $1 }')
    snapshot=${hook##*-}
    snapshot=${snapshot%.service}
    dir=$(query '.[0].directory' list snapshots "$snapshot")
    wait_for 10 has_ticked 2>/dev/null
    assert_eq 2 "$(query '.[0].current_step' list snapshots "$snapshot")" "the step of the page"
}

finish() {
    in_capsule touch $signs/go
    wait_for 30 is_over "$crawl"
    assert_eq sealed "$(crawl_status "$crawl")" "status of $crawl"
    assert_eq null "$(query 'map(field("current_step")) | unique' list snapshots "$crawl")" "steps of pages that are done"
    assert_eq "4 succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$crawl")" "results of $crawl"
    assert_nothing_is_left
}

hooks_stand_still_and_workers_do_not() {
    local before worker=archivist-snapshot-
    begin still
    archivist pause "$crawl"
    wait_for 10 frozen "$hook"
    before=$(ticks)
    assert_eq paused "$(crawl_status "$crawl")" "status of $crawl"
    assert_eq "paused by request" "$(query '.[0].reason' list crawls "$crawl")" "reason"
    worker+=${snapshot#s}.service
    assert_eq running "$(unit_property "$worker" FreezerState)" "freezer of the worker"
    assert_eq running "$(unit_property "archivist-crawl-${crawl#c}.slice" FreezerState)" "freezer of the slice"
    # Other crawls continue, and a restart of the orchestrator changes nothing.
    assert_status 0 archivist add --wait --plugins testafter http://pause.test/other
    in_capsule systemctl kill --kill-who=main --signal=KILL $service
    wait_for 20 has_unit $service
    assert_eq paused "$(crawl_status "$crawl")" "status after a restart"
    frozen "$hook" || fail "$hook is not frozen after a restart"
    assert_eq "$before" "$(ticks)" "ticks of what is frozen"
    assert_status 0 archivist pause "$crawl"
    assert_eq "$before" "$(ticks)" "ticks of what is paused twice"
    archivist resume "$crawl"
    wait_for 10 has_ticked "$before"
    assert_status 0 archivist resume "$crawl"
    finish
    assert_eq 1 "$(query 'map(.attempts) | max' list results "$crawl")" "attempts"
    in_capsule systemctl reset-failed $service
}

nothing_new_starts() {
    begin queue
    archivist pause "$snapshot"
    wait_for 10 frozen "$hook"
    # The crawl itself continues: its other page gets the slot.
    wait_for 20 another_hook
    archivist pause "$crawl"
    in_capsule touch $signs/go
    archivist resume "$snapshot"
    frozen "$hook" || fail "the page of a paused crawl goes on"
    archivist resume "$crawl"
    finish
}

another_hook() {
    [[ $(in_capsule systemctl list-units --plain --no-legend 'archivist-hook-testcount-s*.service' | wc -l) -eq 2 ]]
}

cancelling_reaches_the_frozen() {
    local begun
    begin cancel
    archivist pause "$crawl"
    wait_for 10 frozen "$hook"
    begun=$EPOCHREALTIME
    archivist cancel "$crawl"
    wait_for 10 nothing_is_left
    figure "cancelled while frozen: everything gone after $(((${EPOCHREALTIME/./} - ${begun/./}) / 1000)) ms"
    assert_eq term "$(in_capsule cat "$dir/testcount/story")" "the hook could end in order"
    assert_eq cancelled "$(crawl_status "$crawl")" "status of $crawl"
    assert_nothing_is_left
}

# A run is shown, read and ended by its own id; its page continues.
a_single_run_is_shown_read_and_ended() {
    local run worker
    begin single
    run=$(query 'of("testcount")[0].id' list runs "$snapshot")
    worker=$(query 'map(select(.kind == "snapshot"))[0].id' list runs "$snapshot")
    assert_contains "$(archivist show "$run")" "Status: running since" "show of what runs"
    assert_status 2 archivist cancel "$worker"
    assert_contains "$output" "is the worker of $snapshot" "why a worker is not cancelled"
    archivist cancel "$run"
    wait_for 20 run_is_over "$run"
    archivist cancel "$run"
    assert_contains "$(archivist show "$run")" "Status: ended (interrupted by user)" "show of what was ended"
    assert_contains "$(archivist logs "$run")" "$hook" "logs of a run"
    wait_for 20 page_is_over
    assert_eq "skipped succeeded" "$(query 'sort_by(.plugin) | reverse | map(.status)' list results "$snapshot")" \
        "results of the page"
    in_capsule touch $signs/go
    wait_for 30 is_over "$crawl"
    assert_nothing_is_left
}

run_is_over() { archivist show --json "$1" | gojq --exit-status '.run.run.status == "ended"' >/dev/null; }

page_is_over() { [[ $(query '.[0].status' list snapshots "$snapshot") == sealed ]]; }

# systemd's time limit also counts while the hook is frozen: the hook runs again.
a_limit_is_not_held_against_the_frozen() {
    begin limit --set TIMEOUT=5
    archivist pause "$crawl"
    wait_for 10 frozen "$hook"
    wait_for 40 ended_by_limit
    assert_eq backoff "$(query '.[0].status' list results "$snapshot")" "the result of what the limit ended"
    in_capsule touch $signs/go
    archivist resume "$crawl"
    finish
    assert_eq 2 "$(query 'map(.attempts) | max' list results "$crawl")" "attempts"
}

ended_by_limit() { [[ $(query 'of("testcount")[0].status' list runs "$crawl") == ended ]]; }

a_pause_outlives_the_machine() {
    begin reboot
    archivist pause "$crawl"
    wait_for 10 frozen "$hook"
    capsule reboot "$CAPSULE"
    assert_eq paused "$(crawl_status "$crawl")" "status after a reboot"
    assert_nothing "hooks after a reboot" in_capsule systemctl list-units --plain --no-legend 'archivist-hook-*'
    in_capsule touch $signs/go
    archivist resume "$crawl"
    finish
}

cases hooks_stand_still_and_workers_do_not nothing_new_starts cancelling_reaches_the_frozen \
    a_single_run_is_shown_read_and_ended a_limit_is_not_held_against_the_frozen a_pause_outlives_the_machine
