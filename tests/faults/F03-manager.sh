#!/bin/bash
# F3: repeated daemon-reexec and daemon-reload under load: the run of every hook has its exit status.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 20 200) HOOKS=10 TIMES=$(times 5 20)

clean() { forget_configuration; }

prepare() {
    put_tool
    hooks_with_codes $HOOKS
    configure <<'END'
[Orchestrator]
RetrySec=1s
END
}

reexecutions_lose_nothing() {
    local crawl disturbed n command
    crawl=$(pages "$PAGES" manager testcode)
    disturbed=0
    for ((n = 0; n < TIMES; n++)); do
        for command in daemon-reexec daemon-reload; do
            wait_for 60 has_unit 'archivist-hook-testcode*'
            in_capsule systemctl $command
            disturbed=$((disturbed + 1))
        done
    done
    assert_outcomes "$crawl" $((PAGES * HOOKS))
    figure "F3 daemon-reexec and daemon-reload: $disturbed, hooks=$((PAGES * HOOKS)) $verdict"
    assert_nothing_is_left
}

cases reexecutions_lose_nothing
