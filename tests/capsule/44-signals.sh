#!/bin/bash
# Signals on the bus, as tools of others see them: who receives them, and which. Units at the end of crawls start once, also if the
# orchestrator is killed.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

monitors=(root member stranger)

clean() {
    in_capsule systemctl stop "test-bus-*.service" 2>/dev/null || true
    in_capsule sh -c "rm -f /run/systemd/system/sealed@.service /run/systemd/system/failed@.service /run/systemd/system/idle@.service
        systemctl daemon-reload"
    in_capsule userdel member 2>/dev/null || true
    in_capsule userdel stranger 2>/dev/null || true
    forget_configuration
}

prepare() {
    in_capsule sh -c "useradd --groups archivist member; useradd stranger"
    plugin testbus <<'SH'
#!/bin/sh
case "$*" in *bad.test*) exit 1 ;; esac
echo seen >seen.txt
SH
    in_capsule sh -c "mkdir -p $signs; printf '[Service]\nType=oneshot\nExecStart=/bin/sh -c \"echo %%p %%i >>$signs/told\"\n' |
        tee /run/systemd/system/sealed@.service /run/systemd/system/failed@.service /run/systemd/system/idle@.service; systemctl daemon-reload" >/dev/null
    configure <<'END'
[Orchestrator]
OnSealed=sealed@.service
OnFailed=failed@.service
OnIdle=idle@.service
END
    capsule cp "$ROOT/tests/capsule/signals/subscriber.py" "$CAPSULE:$signs/subscriber.py"
}

# monitor USER: prints what this user receives to the journal, until the end of the test.
monitor() {
    in_capsule systemd-run --quiet --collect --unit="test-bus-$1" --uid="$1" --property=Type=exec stdbuf -oL \
        dbus-monitor --system "type='signal',sender='org.archivist1'"
    wait_for 10 has_heard "$1" NameAcquired
}

# heard USER: names and first arguments of the signals, on one line.
heard() {
    in_capsule journalctl --quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID="$(unit_property "test-bus-$1" InvocationID)" |
        awk '/member=/ { sub(/.*member=/, ""); name = $1; printf "%s ", name; next } /^ *string "[cs][0-9]+"/ { gsub(/"/, "", $2); printf "%s ", $2 }'
}

has_heard() { [[ $(heard "$1") == *"$2"* ]]; }

a_member_sees_crawls_and_a_stranger_nothing() {
    local user
    for user in "${monitors[@]}"; do monitor "$user"; done
    crawl=$(add --plugins testbus "http://bob:hunter2@bus.test/?token=secret")
    keep crawl
    wait_for 30 has_heard member "CrawlSealed $crawl Idle"
    for user in root member; do
        assert_contains "$(heard $user)" "CrawlAdded $crawl CrawlStarted $crawl CrawlSealed $crawl Idle" "signals for $user"
    done
    # A signal that follows those of the crawl on the same connection.
    in_capsule systemctl stop $service
    wait_for 10 has_heard root "Stopping"
    [[ $(heard stranger) != *Crawl* ]] || fail "a stranger received signals: $(heard stranger)"
    ! journal -u test-bus-member | grep -E 'hunter2|token=' || fail "a secret in a signal"
}

pages_are_reported_to_subscribers() {
    needs a_member_sees_crawls_and_a_stranger_nothing
    ! has_heard member Snapshot || fail "signals about pages without a subscriber"
    in_capsule systemd-run --quiet --collect --unit=test-bus-subscriber --uid=member --property=Type=notify \
        python3 $signs/subscriber.py
    crawl=$(add --plugins testbus http://bus.test/)
    wait_for 30 has_heard member "CrawlSealed $crawl"
    assert_contains "$(heard member)" "SnapshotsAdded $crawl CrawlAdded $crawl" "signals about added pages"
    assert_contains "$(heard member)" "SnapshotSealed s" "signals about pages"
    in_capsule systemctl stop test-bus-subscriber
    crawl=$(add --plugins testbus http://bus.test/)
    wait_for 30 has_heard member "CrawlSealed $crawl"
    [[ $(heard member) != *"SnapshotsAdded $crawl"* ]] || fail "a client that left still counts"
}

# The units start concurrently.
told() { in_capsule sh -c "sort $signs/told 2>/dev/null || true" | paste -sd " "; }

has_told() { [[ $(told) == "$1" ]]; }

forget_told() { in_capsule rm -f $signs/told; }

units_start_at_the_end_of_crawls() {
    forget_told
    crawl=$(add --plugins testbus http://bus.test/)
    wait_for 30 has_told "idle idle sealed $crawl"
    forget_told
    crawl=$(add --plugins testbus http://bad.test/)
    wait_for 30 has_told "failed $crawl idle idle"
    forget_told
    archivist add --wait --plugins testbus http://bus.test/ >/dev/null
    assert_status 3 archivist add --wait --plugins testbus http://bad.test/
    wait_for 30 has_told_words 8
}

has_told_words() { [[ $(told | wc -w) -eq $1 ]]; }

# Each unit once, however often it started.
told_each() { in_capsule sh -c "sort --unique $signs/told 2>/dev/null || true" | paste -sd " "; }

has_told_each() { [[ $(told_each) == "$1" ]]; }

# The signal follows the commit: the orchestrator dies before or while it starts the units. A unit that it was starting, and
# that has ended before the next orchestrator looks, starts again.
killed_orchestrator_starts_them() {
    local crawl round
    for round in 1 2 3; do
        forget_told
        in_capsule systemctl reset-failed $service
        in_capsule systemd-run --quiet --collect --unit="test-bus-killer$round" --property=Type=exec sh -c \
            "stdbuf -oL dbus-monitor --system \"type='signal',sender='org.archivist1'\" | while read -r line; do
                echo \"\$line\"
                case \$line in *member=CrawlSealed*) systemctl kill --signal=KILL $service ;; esac
            done"
        wait_for 10 has_heard "killer$round" NameAcquired
        crawl=$(add --plugins testbus http://bus.test/)
        wait_for 30 has_told_each "idle idle sealed $crawl"
        in_capsule systemctl stop "test-bus-killer$round"
    done
    assert_contains "$(journal -u $service -n 200)" "code=killed, status=9/KILL" "journal"
}

cases a_member_sees_crawls_and_a_stranger_nothing pages_are_reported_to_subscribers units_start_at_the_end_of_crawls \
    killed_orchestrator_starts_them
