#!/bin/bash
# The machine does not reach the Internet: no page fails, the reason is named, and work continues by itself. Names of the Internet
# lead to a server of the capsule, by a name server of the test.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

resolver=127.0.0.77

clean() {
    in_capsule sh -c '[ ! -e /etc/resolv.conf.test ] || cat /etc/resolv.conf.test >/etc/resolv.conf; rm -f /etc/resolv.conf.test /opt/resolver.py
        systemctl stop test-resolver 2>/dev/null'
    stop_site
    forget_configuration
}

prepare() {
    start_site
    port=$(sed 's|.*:||; s|/||' <<<"$site")
    printf '[Hooks]\nReach=loopback\n[Orchestrator]\nHostDelaySec=0\n' | configure
    capsule cp "$(dirname "$0")/network/resolver.py" "$CAPSULE:/opt/resolver.py"
    in_capsule sh -c "cp /etc/resolv.conf /etc/resolv.conf.test; echo nameserver $resolver >/etc/resolv.conf"
}

resolver_starts() {
    in_capsule systemd-run --quiet --collect --unit=test-resolver --property=Type=notify python3 /opt/resolver.py $resolver 127.0.0.1
}

# pages COUNT: adds as many pages, each of another host.
pages() {
    local n
    for ((n = 1; n <= $1; n++)); do echo "http://h$n.archive-test.org:$port/"; done |
        in_capsule archivist add --json --plugins wget,headers - | evaluate '.crawl'
}
states() { query 'group_by(.status) | map("\(length) \(.[0].status)")' list snapshots "$1" --limit 0; }
waits() { [[ $(query '.network_outage // ""' status) == *"$1"* ]]; }
is_up() { [[ $(query '.network_outage // "up"' status) == up ]]; }

dead_name_server_holds_the_queue() {
    crawl=$(pages 12)
    keep crawl
    wait_for 60 waits "names cannot be resolved: "
    wait_for 60 no_page_runs
    assert_eq "12 queued" "$(states "$crawl")" "pages"
    assert_eq "0" "$(query 'map(.attempts) | max' list snapshots "$crawl")" "attempts"
    assert_contains "$(archivist status)" "Blocked: pages on the Internet wait: the network is down since" status
    assert_contains "$(archivist why "$crawl" || true)" "the network is down since" why
    assert_contains "$(archivist doctor || true)" "names cannot be resolved" doctor
    figure "$(query '.network_outage' status)"
}
no_page_runs() { ! has_unit 'archivist-snapshot-*.service'; }

pages_of_the_machine_do_not_wait() {
    local crawl
    needs dead_name_server_holds_the_queue
    crawl=$(archivist add --json --wait --plugins wget "$site" | gojq --raw-output --slurp '.[0].crawl')
    assert_eq "1 sealed" "$(states "$crawl")" "a page of the machine"
    waits "names cannot be resolved: " || fail "its answer ended the outage"
}

continues_by_itself() {
    local start=$EPOCHSECONDS
    needs dead_name_server_holds_the_queue
    resolver_starts
    wait_for 330 is_over "$crawl"
    is_up || fail "still down"
    assert_eq "12 sealed" "$(states "$crawl")" "pages"
    assert_eq succeeded "$(query 'map(.status) | unique' list results "$crawl" --limit 0)" "results"
    figure "12 of 12 pages $((EPOCHSECONDS - start)) s after the name server"
}

name_that_does_not_exist_fails_alone() {
    local crawl
    needs continues_by_itself
    assert_status 3 archivist add --wait --plugins wget http://missing.archive-test.org/
    crawl=$(query '.[0].id' list crawls)
    is_up || fail "one name holds the queue"
    assert_eq "1 sealed" "$(states "$crawl")" "the page"
}

cases dead_name_server_holds_the_queue pages_of_the_machine_do_not_wait continues_by_itself name_that_does_not_exist_fails_alone
