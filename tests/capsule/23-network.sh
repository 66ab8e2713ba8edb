#!/bin/bash
# Network=private: hooks of one crawl reach each other on loopback, and neither hooks of other crawls nor servers on the
# loopback of the machine, except for opened ports; names are resolved by a server on that loopback; nothing of the network remains.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

network_drop_in=/etc/systemd/system/archivist-network@.service.d
# A port for this capsule alone: all capsules share the network of the machine.
nameserver=127.$((RANDOM % 200 + 10)).$((RANDOM % 250)).53
neighbour=7411

clean() {
    in_capsule sh -c "touch $signs/go; [ ! -e /etc/resolv.conf.test ] || cp /etc/resolv.conf.test /etc/resolv.conf
        rm -rf $network_drop_in /etc/resolv.conf.test /opt/resolver.py; [ ! -e /usr/bin/pasta.test ] || mv /usr/bin/pasta.test /usr/bin/pasta
        systemctl stop test-resolver test-loopback 2>/dev/null; systemctl daemon-reload"
    stop_site
    forget_configuration
}

prepare() {
    start_site
    site=${site%/}
    plugin testlisten on_Snapshot__10_testlisten.finite.bg.py <<PY
#!/usr/bin/python3
import os, socket, time
server = socket.create_server(("127.0.0.1", $neighbour))
open("listening", "w").close()
while not os.path.exists("$signs/go"):
    time.sleep(0.1)
PY
    plugin testtalk on_Snapshot__20_testtalk.py <<PY
#!/usr/bin/python3
import os, socket, time
while os.path.isdir("../testlisten") and not os.path.exists("../testlisten/listening"):
    time.sleep(0.05)
def reaches(port):
    try:
        socket.create_connection(("127.0.0.1", port), 10).close()
        return "yes"
    except OSError:
        return "no"
with open("talk.txt", "w") as out:
    print("neighbour", reaches($neighbour), "site", reaches(${site##*:}), "machine", reaches($(loopback_port)),
        "name", socket.gethostbyname("somewhere.test"), file=out)
PY
    capsule cp "$(dirname "$0")/network/resolver.py" "$CAPSULE:/opt/resolver.py"
    in_capsule systemd-run --quiet --collect --unit=test-resolver --property=Type=notify python3 /opt/resolver.py $nameserver
    in_capsule sh -c "cp /etc/resolv.conf /etc/resolv.conf.test; echo nameserver $nameserver >/etc/resolv.conf
        mkdir -p $network_drop_in; printf '[Service]\nEnvironment=LOOPBACK_PORTS=${site##*:}\n' >$network_drop_in/test.conf; systemctl daemon-reload"
    configure <<<$'[Hooks]\nNetwork=private\n[Orchestrator]\nRetrySec=1s\nRetryMaxSec=1s'
}

# Starts a server of the machine that no crawl may reach; prints its port.
loopback_port() {
    in_capsule systemd-run --quiet --collect --unit=test-loopback --property=Type=exec \
        python3 -u -c 'import socket, time; server = socket.create_server(("127.0.0.1", 0)); print(server.getsockname()[1]); time.sleep(3600)'
    wait_for 20 says_port
}

says_port() { in_capsule journalctl --quiet --no-pager --output=cat --unit=test-loopback _COMM=python3 | tail -n 1 | grep .; }

talked() {
    in_capsule cat "$(query '.[0].directory' list snapshots "$1")/testtalk/talk.txt"
}

is_refused_without_pasta() {
    in_capsule mv /usr/bin/pasta /usr/bin/pasta.test
    assert_status 1 archivist add http://nowhere.test/
    assert_contains "$output" "Network=private needs /usr/bin/pasta; apt install passt" "why nothing is added"
    assert_status 1 archivist doctor
    assert_contains "$output" "apt install passt" "what the doctor says"
    in_capsule mv /usr/bin/pasta.test /usr/bin/pasta
}

hooks_of_a_crawl_reach_each_other_only() {
    local first second
    first=$(add --plugins testlisten,testtalk http://first.test/)
    wait_for 30 is_there "$first"
    assert_eq "neighbour yes site yes machine no name 192.0.2.77" "$(talked "$first")" "what a hook reaches beside one that listens"
    in_capsule touch $signs/go
    wait_for 30 is_over "$first"
    in_capsule rm $signs/go
    # Now the listener of another crawl is running.
    first=$(add --plugins testlisten http://first.test/again)
    wait_for 30 has_unit "archivist-hook-testlisten-s*.service"
    second=$(add --plugins testtalk http://second.test/)
    wait_for 30 is_over "$second"
    assert_eq "neighbour no site yes machine no name 192.0.2.77" "$(talked "$second")" "what a hook of another crawl reaches"
    listening=$first
    keep listening
}

is_there() { talked "$1" >/dev/null 2>&1; }

# Units that are bound to the network end with it. systemd stopped the hook, so it runs again, in a new network.
survives_the_end_of_pasta() {
    needs hooks_of_a_crawl_reach_each_other_only
    local before
    before=$(listener)
    in_capsule systemctl kill --kill-whom=main --signal=KILL "archivist-network@crawl-${listening#c}.service"
    wait_for 60 listens_again "$before"
    in_capsule touch $signs/go
    wait_for 60 is_over "$listening"
    in_capsule systemctl reset-failed "archivist-network@*" 2>/dev/null || true
    assert_eq succeeded "$(query 'of("testlisten") | map(.status)' list results "$listening")" "the hook that was stopped"
}

# Prints the invocation of the hook that listens.
listener() { in_capsule systemctl show --property=InvocationID --value 'archivist-hook-testlisten-s*.service' | grep .; }
listens_again() { [[ $(listener) != "$1" ]] && listener >/dev/null; }

a_browser_works_in_it() {
    local crawl
    crawl=$(add --plugins title "$site/")
    wait_for 60 is_over "$crawl"
    assert_eq succeeded "$(query 'of("title") | map(.status)' list results "$crawl")" "title, by the browser"
}

# Crawls are cancelled at random times.
a_network_that_is_stopped_while_it_starts_is_no_failure() {
    local unit='archivist-network@crawl-990000.service' n
    for n in $(seq 12); do
        in_capsule sh -c "systemctl start --no-block $unit; sleep 0.$((RANDOM % 3))$((RANDOM % 10)); systemctl stop $unit" ||
            fail "stop $n of the network"
        assert_nothing "units that failed at stop $n" in_capsule systemctl list-units --failed --plain --no-legend
    done
    in_capsule systemctl stop archivist-crawl-990000.slice
}

no_network_is_left() {
    assert_nothing_is_left
    assert_nothing "network namespaces that are left" in_capsule ip netns list
}

cases is_refused_without_pasta hooks_of_a_crawl_reach_each_other_only survives_the_end_of_pasta a_browser_works_in_it \
    a_network_that_is_stopped_while_it_starts_is_no_failure no_network_is_left
