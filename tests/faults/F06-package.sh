#!/bin/bash
# F6: the package is installed again, as in an upgrade, while hooks run: every hook ends with the same invocation. It is removed
# while hooks run, which stops them, and installed again: all of them run to their end then.
source "$(dirname "$0")/lib.sh"

HOOKS=50

clean() {
    in_capsule systemctl --quiet is-active $service || apt_in_capsule install "$(put_deb)"
    forget_configuration
}

prepare() {
    put_tool
    hooks_at_a_gate $HOOKS
    configure <<'END'
[Orchestrator]
RetrySec=1s
RetryMaxSec=1s
END
}

an_upgrade_is_not_noticed() {
    local before
    gated 1 upgrade $HOOKS
    before=$(invocations)
    apt_in_capsule install --reinstall "$(put_deb)"
    wait_for 30 has_unit $service
    assert_eq "$before" "$(invocations)" "invocations after the package was installed again"
    open_gate $HOOKS
    assert_outcomes "$crawl" $HOOKS
    assert_eq "$HOOKS succeeded 1" "$(results)" "results, status and attempts"
    figure "F6 installed again with running hooks=$HOOKS, the same invocation=$(wc -l <<<"$before") $verdict"
    assert_nothing_is_left
}

a_removal_is_a_pause() {
    gated 1 removal $HOOKS
    apt_in_capsule remove archivist
    assert_eq 0 "$(waiting)" "hooks that run after the removal"
    apt_in_capsule install "$(put_deb)"
    wait_for 120 are_waiting $HOOKS
    open_gate $HOOKS
    finish "$crawl"
    assert_eq "$HOOKS succeeded 1" "$(results)" "results, status and attempts"
    figure "F6 removed with running hooks=$HOOKS, done after the next installation=$HOOKS"
    assert_nothing_is_left
}

results() { query '[length, (map(.status) | unique[]), (map(.attempts) | unique[])]' list results "$crawl" --limit 0; }

cases an_upgrade_is_not_noticed a_removal_is_a_pause
