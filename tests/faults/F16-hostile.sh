#!/bin/bash
# F16: a hook, a worker and a user without rights call every method of the orchestrator's bus interfaces with foreign, empty or
# absurd ids and tokens: every call is refused and logged, and nothing changes.
source "$(dirname "$0")/lib.sh"

hook=archivist-hook-hostile-test1.service
worker=archivist-snapshot-hostile.service

clean() {
    in_capsule rm -f /usr/local/bin/hostile.py /usr/local/bin/hostile.methods
    forget_configuration
}

prepare() {
    put_tool
    capsule cp "$ROOT/tests/faults/hostile.py" "$CAPSULE:/usr/local/bin/hostile.py"
    plugin testhold <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
SH
    # The page must be unchanged however long the calls take.
    configure <<'END'
[Hooks]
TimeoutSec=1h
END
    methods | in_capsule sh -c 'cat >/usr/local/bin/hostile.methods'
}

# methods: prints each method of the interfaces with its signature.
methods() {
    local interface
    for interface in Manager Retention Search Store Watches Worker; do
        in_capsule busctl introspect org.archivist1 /org/archivist1 org.archivist1.$interface --no-pager --no-legend |
            awk -v interface=$interface '$2 == "method" { print interface $1, $3 }'
    done
}

# everything: prints what the calls are about, and the newest rows of all lists. Other tests may have left very many rows.
everything() {
    local what
    for what in crawls snapshots results runs; do archivist list $what --limit 200 --json; done
    for what in c1 s1 "$crawl" "$snapshot"; do archivist show "$what" --json 2>&1 || true; done
    query 'field("crawls"), field("snapshots")' status
}

# attack NAME COMMAND…: prints the answers that are not refusals, and the number of calls.
attack() {
    local name=$1 answers began
    shift
    began=$SECONDS
    answers=$(in_capsule "$@" python3 /usr/local/bin/hostile.py "$crawl" "$snapshot") || fail "$name: $answers"
    calls=$((calls + $(wc -l <<<"$answers")))
    echo "$name: $((SECONDS - began)) s"
    bad+=$(grep -vE ' (org\.freedesktop\.DBus\.Error\.|org\.archivist1\.|unreachable:)' <<<"$answers" | sed "s/^/$name: /" || true)
}

every_call_is_refused() {
    local crawl snapshot before pid since calls bad user log
    crawl=$(add --plugins testhold http://hostile.test/)
    wait_for 20 has_unit 'archivist-hook-testhold-s*.service'
    snapshot=$(query '.[0].id' list snapshots "$crawl")
    before=$(everything) pid=$(unit_property $service MainPID) since=$(in_capsule date '+%F %T')
    calls=0 bad=
    assert_contains "$(in_capsule env ONLY=Manager.Status python3 /usr/local/bin/hostile.py)" "Manager.Status answered" "the same from root"
    attack stranger setpriv --reuid nobody --regid nogroup --clear-groups
    attack hook systemd-run --quiet --wait --pipe --collect --uid=archivist-hook-16 --unit=$hook
    for user in archivist-hook archivist-hook-16; do
        attack "user $user" setpriv --reuid $user --regid archivist-hook --init-groups
    done
    attack worker systemd-run --quiet --wait --pipe --collect --unit=$worker
    assert_eq "" "$bad" "calls that were not refused"
    assert_eq "$before" "$(everything)" "what is on record"
    assert_eq "$pid" "$(unit_property $service MainPID)" "process of the orchestrator"
    log=$(in_capsule journalctl --quiet --no-pager --since "$since" --output=cat --unit=dbus.service --unit=$service)
    assert_contains "$log" "Rejected send message" "what the bus logs"
    assert_contains "$log" "this token belongs to no worker" "what the orchestrator logs"
    figure "F16 hostile calls=$calls, answered otherwise than with a refusal=0, changes=0"
    in_capsule touch $signs/go
    finish "$crawl"
    assert_nothing_is_left
}

cases every_call_is_refused
