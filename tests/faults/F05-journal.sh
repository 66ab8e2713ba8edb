#!/bin/bash
# F5: journald is stopped, killed, restarted and flooded under load: the orchestrator answers, and the run of every hook has
# its exit status. The time of an answer is printed but not judged, because it depends on the machine.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 30 300) HOOKS=10 TIMES=$(times 2 10)

clean() {
    in_capsule systemctl stop test-flood.service 2>/dev/null || true
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

cases a_journal_in_trouble_holds_up_nothing
