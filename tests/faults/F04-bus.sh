#!/bin/bash
# F4: the bus stops and starts under load, at once and after longer than systemd restarts a failing service: the
# orchestrator returns without an administrator, and the end of every hook is recorded.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 20 200) HOOKS=10 TIMES=$(times 3 10) AWAY=$(times 5 45)

clean() {
    in_capsule systemctl reset-failed dbus.service dbus.socket 2>/dev/null || true
    in_capsule systemctl start dbus.socket
    forget_configuration
}

is_waiting_for_the_bus() { [[ $(unit_property $service StatusText) == *"no message bus listens on"* ]]; }

prepare() {
    put_tool
    hooks_with_codes $HOOKS
    configure <<'END'
[Orchestrator]
RetrySec=1s
AttemptsMax=100
END
}

no_bus_for_a_while() {
    local crawl
    crawl=$(pages "$PAGES" gone testcode)
    wait_for 60 has_unit 'archivist-hook-testcode*'
    in_capsule systemctl stop dbus.socket dbus.service
    wait_for 60 is_waiting_for_the_bus
    sleep "$AWAY" # what is suffered
    in_capsule systemctl start dbus.socket dbus.service
    in_capsule systemctl try-restart systemd-logind.service
    assert_outcomes "$crawl" $((PAGES * HOOKS))
    figure "F4 no bus for $AWAY s, hooks=$((PAGES * HOOKS)) $verdict"
}

restarts_of_the_bus() {
    local crawl n
    crawl=$(pages "$PAGES" bus testcode)
    for ((n = 0; n < TIMES; n++)); do
        wait_for 60 has_unit 'archivist-hook-testcode*'
        restart_bus
        wait_for 60 has_unit $service
    done
    assert_outcomes "$crawl" $((PAGES * HOOKS))
    figure "F4 restarts of dbus=$TIMES hooks=$((PAGES * HOOKS)) $verdict"
    assert_nothing_is_left
}

cases no_bus_for_a_while restarts_of_the_bus
