#!/bin/bash
# F4: the bus goes away and comes back under load: the orchestrator is there again, and no end of a hook is missed.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 20 200) HOOKS=10 TIMES=$(times 3 10)

clean() { forget_configuration; }

trap clean EXIT
put_tool
hooks_with_codes $HOOKS
configure <<'END'
[Orchestrator]
RetrySec=1s
AttemptsMax=100
END
crawl=$(pages "$PAGES" bus testcode)
for ((n = 0; n < TIMES; n++)); do
    wait_for 60 has_unit 'archivist-hook-testcode*'
    restart_bus
    wait_for 60 has_unit $service
done
assert_outcomes "$crawl" $((PAGES * HOOKS))
figure "F4 restarts of dbus=$TIMES hooks=$((PAGES * HOOKS)) $verdict"
assert_nothing_is_left
trap - EXIT
clean
