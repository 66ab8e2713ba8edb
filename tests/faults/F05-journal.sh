#!/bin/bash
# F5: journald is stopped, killed, restarted and flooded under load, and its disk is full: the orchestrator answers, and the run of
# every hook has its exit status. The time of an answer is printed but not judged, because it depends on the machine.
source "$(dirname "$0")/lib.sh"

journals=(/var/log/journal /run/log/journal)
PAGES=$(times 30 300) HOOKS=10 TIMES=$(times 2 10)

clean() {
    in_capsule systemctl stop test-flood.service 2>/dev/null || true
    give_space
    in_capsule systemctl reset-failed test-flood.service 2>/dev/null || true
    in_capsule systemctl reset-failed systemd-journald.service 2>/dev/null || true
    in_capsule systemctl start systemd-journald.service
    forget_configuration
}

prepare() {
    put_tool
    hooks_with_codes $HOOKS
    configure <<'END'
[Orchestrator]
RetrySec=1s
END
}

a_journal_in_trouble_holds_up_nothing() {
    local pid crawl disturbed n command latency
    pid=$(unit_property $service MainPID)
    crawl=$(pages "$PAGES" journal testcode)
    # Older versions of journald lose their open streams when they are killed.
    in_capsule systemd-run --quiet --unit=test-flood --property=LogRateLimitIntervalSec=0 --property=RuntimeMaxSec=600 \
        --property=Restart=on-failure --property=RestartSec=100ms --property=StartLimitIntervalSec=0 \
        sh -c 'yes "all work and no play makes a long journal" | head -n 2000000'
    disturbed=0
    for ((n = 0; n < TIMES; n++)); do
        for command in "stop systemd-journald.service" "kill --signal=KILL systemd-journald.service" "restart systemd-journald.service"; do
            is_over "$crawl" && break 2
            disturbed=$((disturbed + 1))
            # shellcheck disable=SC2086 # words
            in_capsule systemctl $command 2>/dev/null
            # It counts its own restarts.
            in_capsule systemctl reset-failed systemd-journald.service 2>/dev/null || true
        done
    done
    latency=$(tool latency 100 0.05)
    assert_outcomes "$crawl" $((PAGES * HOOKS))
    ((disturbed > TIMES)) || fail "the crawl was over after $disturbed disturbances"
    assert_eq "$pid" "$(unit_property $service MainPID)" "process of the orchestrator"
    figure "F5 disturbances of journald=$disturbed under a flood, answers in ms $latency, hooks=$((PAGES * HOOKS)) $verdict"
}

# Both directories of journald are on full disks, which have no file of an older journal that it could remove.
a_full_disk_of_the_journal_holds_up_nothing() {
    local crawl directory pages=$((PAGES / 3))
    for directory in "${journals[@]}"; do
        in_capsule sh -c "mkdir -p $directory; mount -t tmpfs -o size=64k,mode=2755 tmpfs $directory
            dd if=/dev/zero of=$directory/filler bs=4k" 2>/dev/null || true
    done
    # It may not start at all: systemd 257 does not.
    in_capsule systemctl restart systemd-journald.service 2>/dev/null || true
    crawl=$(pages "$pages" full testcode)
    assert_outcomes "$crawl" $((pages * HOOKS))
    assert_eq "" "$(in_capsule sh -c "find ${journals[*]} -name '*.journal'")" "journals on full disks"
    give_space
    figure "F5 the disk of the journal is full: hooks=$((pages * HOOKS)) $verdict"
    assert_nothing_is_left
}

give_space() {
    in_capsule sh -c "for directory in ${journals[*]}; do umount \$directory && rmdir \$directory; done
        systemctl reset-failed systemd-journald.service 'systemd-journald*.socket'" 2>/dev/null || true
    in_capsule systemctl restart systemd-journald.service
}

cases a_journal_in_trouble_holds_up_nothing a_full_disk_of_the_journal_holds_up_nothing
