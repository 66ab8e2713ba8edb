#!/bin/bash
# What a page can have hooks and checks ask: servers on the machine's loopback, at another address of the machine, in private networks and at metadata addresses. The page is on a public
# site and asks for all of them, by images, frames, style sheets, scripts and redirects; wget and chromium archive it. The site and its victims are in a
# network of the test's own, which is the machine's for hooks of the machine's network, and the one that crawls' own networks are connected to.
# In a short run early, because it takes minutes.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

world=test-world
public=93.184.216.34
moved=(archivist-hook-.service archivist-check-.service archivist-network@.service archivist-network-local@.service)

clean() {
    in_capsule sh -c "systemctl stop test-victims test-public test-late 2>/dev/null; ip netns delete $world 2>/dev/null
        cd /etc/systemd/system && rm -f ${moved[*]/%/.d/90-test.conf} archivist-reach.service.d/90-test.conf $service.d/90-test.conf && rmdir --ignore-fail-on-non-empty *.d
        sed -i '/ metadata.test/d' /etc/hosts; rm -f /opt/world.py /usr/local/bin/lighthouse; archivist watch remove test 2>/dev/null; systemctl daemon-reload
        systemctl restart archivist-reach" >/dev/null
    forget_configuration
}

prepare() {
    capsule cp "$(dirname "$0")/reach/world.py" "$CAPSULE:/opt/world.py"
    in_capsule sh -c "set -e
        ip netns add $world
        ip -n $world link set lo up
        ip -n $world link add name net0 type veth peer name net1
        ip -n $world link set net0 up
        ip -n $world address add $public/24 dev net0
        for victim in 169.254.169.254 192.168.77.1 10.9.9.2 100.100.100.200 93.184.216.99; do ip -n $world address add \$victim/32 dev net0; done
        ip -n $world route add default via 93.184.216.1
        grep -q metadata.test /etc/hosts || echo '169.254.169.254 metadata.test' >>/etc/hosts"
    in_world test-victims python3 /opt/world.py
    in_world test-public python3 /opt/world.py $public
    # The orchestrator sees the addresses of the test's network as the machine's.
    in_capsule sh -c "mkdir -p /etc/systemd/system/$service.d
        printf '[Service]\nBindReadOnlyPaths=\nBindReadOnlyPaths=/proc/%s/net:/run/archivist/net\n' $(unit_property test-victims MainPID) >/etc/systemd/system/$service.d/90-test.conf
        systemctl daemon-reload"
    restart
}

in_world() {
    local unit=$1
    shift
    in_capsule systemd-run --quiet --collect --unit="$unit" --property=Type=notify --property=NetworkNamespacePath=/run/netns/$world "$@"
}

# moves UNIT…: so that these have the test's network for the machine's.
move() {
    local unit
    in_capsule sh -c "cd /etc/systemd/system; rm -f ${moved[*]/%/.d/90-test.conf}"
    for unit; do
        in_capsule sh -c "mkdir -p /etc/systemd/system/$unit.d && printf '[Service]\nNetworkNamespacePath=/run/netns/$world\n' >/etc/systemd/system/$unit.d/90-test.conf"
    done
    in_capsule systemctl daemon-reload
}

# Prints the requests to the victims since the last call.
asked() {
    in_capsule sh -c 'journalctl --quiet --no-pager --output=cat --unit=test-victims --cursor-file=/run/test-reach _COMM=python3 | grep ^asked | sort -u' || true
}

errors() { query 'map(select(.status == "failed").error)' list results "$1"; }

the_filter_holds() {
    assert_eq "0" "$(unit_property archivist-reach.service ExecMainStatus)" "exit status of the test of the filter"
    assert_contains "$(archivist doctor || true)" "network          $1" "what the doctor says"
}

# a_public_page_reaches_no_private_host WHERE PLUGIN…
a_public_page_reaches_no_private_host() {
    local where=$1 names
    shift
    asked >/dev/null
    names=$(IFS=,; echo "$*")
    crawl=$(add --plugins "$names" --set TIMEOUT=40 "http://$public:8080/")
    wait_for 60 is_over "$crawl"
    assert_eq "$(printf '%s=succeeded\n' "$@" | sort | xargs)" \
        "$(query 'map(select(.plugin != "chromium") | .plugin + "=" + .status) | sort' list results "$crawl")" "results of the public page ($where)"
    assert_eq "" "$(asked | grep -v "^asked ${open:-none} ")" "what the public page had hooks ask ($where)"
}

a_redirect_is_refused_and_named() {
    crawl=$(printf "http://$public:8080/to/%s\n" 192.168.77.1 metadata.test | add --plugins wget,headers,dom -)
    wait_for 60 is_over "$crawl"
    assert_eq "" "$(asked)" "who was asked by redirects ($1)"
    assert_contains "$(errors "$crawl")" "192.168.77.1, an address of a private network that hooks do not reach: Reach=private in archivist.conf(5) allows it" "errors ($1)"
    assert_contains "$(errors "$crawl")" "metadata.test is 169.254.169.254, an address of a link-local, multicast or metadata network that hooks do not reach" "errors ($1)"
    assert_contains "$(archivist why "$crawl")" "hooks of $crawl can only reach the Internet and $public/32, but not 93.184.216.0/24 (this machine and its networks): a connection" "why ($1)"
}

another_address_of_the_machine_is_refused_and_named() {
    # In a network of their own, hooks get no answer from there: the browser waits, and then wget.
    crawl=$(add --plugins wget,headers,dom --set TIMEOUT=40 http://$public:8080/to/93.184.216.99)
    wait_for 60 is_over "$crawl"
    assert_eq "" "$(asked)" "who was asked at another address of the machine by redirects ($1)"
    assert_contains "$(errors "$crawl")" "93.184.216.99, an address of this machine or of its networks that hooks do not reach: Reach=93.184.216.99 in archivist.conf(5) allows it" "errors ($1)"
}

own_urls_are_reached() {
    local url
    for url; do
        crawl=$(add --plugins headers "http://$url:8099/own")
        wait_for 30 is_over "$crawl"
        assert_eq succeeded "$(query '.[0].status' list results "$crawl")" "headers of $url"
        assert_contains "$(asked)" "asked $url GET /own" "$url as the crawl's own"
    done
}

metadata_is_never_reached() {
    crawl=$(add --plugins headers http://169.254.169.254:8099/latest)
    wait_for 30 is_over "$crawl"
    assert_eq "" "$(asked)" "a metadata address as the crawl's own"
    assert_contains "$(errors "$crawl")" "nothing allows it" "its error"
}

# The address filter of the control group also covers a renderer in a network namespace of its own.
a_renderer_in_a_namespace_of_its_own_is_covered() {
    local inside="ip link set lo up; python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b\"\", (\"127.0.0.1\", 9))'"
    assert_status 1 in_capsule systemd-run --quiet --collect --pipe --wait --property=IPAddressDeny=127.0.0.0/8 unshare --user --map-root-user --net sh -c "$inside"
    assert_contains "$output" "Operation not permitted" "the filter within another namespace"
}

hooks_of_the_machine_s_network() {
    move archivist-hook-.service
    configure <<<$'[Hooks]\nNetwork=host'
    the_filter_holds "the machine's (Network=host), Reach=public"
    a_public_page_reaches_no_private_host host wget dom
    own_urls_are_reached 127.0.0.1 192.168.77.1 93.184.216.99
}

# An address is added to the machine while the browser connects to the page: chromium gives up all connections.
the_network_changes_meanwhile() {
    local late=93.184.216.77
    needs hooks_of_the_machine_s_network
    in_capsule ip netns exec $world sysctl --quiet --write net.ipv4.ip_nonlocal_bind=1
    in_world test-late python3 /opt/world.py $late
    in_capsule ip -n $world link set net1 up
    crawl=$(add --plugins dom --set TIMEOUT=40 "http://$late:8080/")
    wait_for 20 is_looked_for $late
    in_capsule ip -n $world address add $late/32 dev net0
    wait_for 60 is_over "$crawl"
    assert_eq succeeded "$(query 'of("dom") | only | .status' list results "$crawl")" "DOM of the page"
    in_capsule sh -c "systemctl stop test-late; ip -n $world link set net1 down; ip -n $world address delete $late/32 dev net0"
}
is_looked_for() { in_capsule ip -n $world neighbour show to "$1" | grep -q INCOMPLETE; }

# A name server is reached although it is private.
name_servers_are_reached() {
    local unit="archivist-hook-testsleep-s*.service"
    plugin testsleep <<<$'#!/bin/sh\nexec sleep 20'
    in_capsule sh -c "cp /etc/resolv.conf /run/test-resolv; printf 'nameserver 127.0.0.53\nnameserver 169.254.169.254\n' >/etc/resolv.conf"
    configure <<<$'[Hooks]\nNetwork=host\nReach=10.9.0.0/16'
    crawl=$(add --plugins testsleep "http://$public:8080/")
    wait_for 20 has_unit "$unit"
    assert_eq "127.0.0.53/32" "$(in_capsule systemctl show --property=IPAddressAllow --value "$unit")" "what the unit of a hook allows"
    assert_contains " $(in_capsule systemctl show --property=IPAddressDeny --value "$unit") " " 10.10.0.0/15 " "what it refuses of 10.0.0.0/8"
    assert_contains "$(archivist doctor || true)" "169.254.169.254 of /etc/resolv.conf is an address that hooks cannot reach" "the doctor on name servers"
    in_capsule sh -c 'cat /run/test-resolv >/etc/resolv.conf'
    archivist cancel "$crawl" >/dev/null
}

hooks_in_networks_of_their_own() {
    move archivist-network@.service archivist-network-local@.service
    configure </dev/null
    the_filter_holds "one for each crawl (Network=auto), Reach=public"
    a_public_page_reaches_no_private_host private wget dom
    a_redirect_is_refused_and_named private
    another_address_of_the_machine_is_refused_and_named private
    own_urls_are_reached 192.168.77.1 93.184.216.99
    metadata_is_never_reached
}

# Without the address filter, the rules of the network refuse everything but its loopback and the Internet, of which other addresses of
# the machine are a part for it.
the_network_is_a_wall_of_its_own() {
    needs hooks_in_networks_of_their_own
    local open=93.184.216.99
    in_capsule sh -c 'mkdir -p /etc/systemd/system/archivist-hook-.service.d
        printf "[Service]\nIPAddressAllow=any\n" >/etc/systemd/system/archivist-hook-.service.d/90-test.conf; systemctl daemon-reload'
    a_public_page_reaches_no_private_host "private, no filter" wget
}

checks_go_where_their_watch_is() {
    move archivist-check-.service
    archivist watch add test "http://$public:8080/to/10.9.9.2" --status "every 1h" --lighthouse no --crawl no >/dev/null
    archivist watch run test >/dev/null
    wait_for 20 check_is_done
    assert_contains "$(query '.[0].error' watch history test)" "10.9.9.2 is an address of a private network, which this check does not reach" "a redirect of a watched site"
    archivist watch add --replace test "http://10.9.9.2:8099/watched" --status "every 1h" --lighthouse no --crawl no >/dev/null
    archivist watch run test >/dev/null
    wait_for 20 check_is_done
    assert_eq "200" "$(query '.[0].status_code' watch history test)" "a watch of a private site"
    assert_eq "asked 10.9.9.2 GET /watched" "$(asked)" "who was asked by checks"
}

# A replacement for lighthouse: its browser, on loopback, loads the page and sends all of its requests.
a_browser_on_the_loopback_is_reached() {
    move archivist-network@.service
    in_capsule sh -c 'cat >/usr/local/bin/lighthouse && chmod 755 /usr/local/bin/lighthouse' <<'PY'
#!/usr/bin/python3
import http.server, json, sys, threading, urllib.request
browser = http.server.HTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=browser.serve_forever, daemon=True).start()
urllib.request.urlopen("http://127.0.0.1:%d/" % browser.server_port, timeout=5)
urllib.request.urlopen(sys.argv[1], timeout=5)
for victim in ("169.254.169.254", "10.9.9.2", "192.168.77.1", "100.100.100.200"):
    try:
        urllib.request.urlopen("http://%s:8099/lighthouse" % victim, timeout=1)
    except OSError:
        pass
print(json.dumps({"categories": {"seo": {"score": 1}}}))
PY
    asked >/dev/null
    archivist watch add --replace test "http://$public:8080/" --status no --lighthouse "every 1d" --crawl no >/dev/null
    archivist watch run test --kind lighthouse >/dev/null
    wait_for 40 check_is_done
    assert_eq "true null" "$(query '"\(.[0].ok) \(.[0].error)"' watch history test)" "a check with a browser"
    assert_eq "" "$(asked)" "who was asked by its browser"
}

check_is_done() { [[ $(query '.[0].state' watch history test) == "ended" ]]; }

# As in a container where the filter is accepted and not applied: the orchestrator reports it, and nothing fails.
a_filter_without_effect_is_reported() {
    in_capsule sh -c 'mkdir -p /etc/systemd/system/archivist-reach.service.d
        printf "[Service]\nIPAddressAllow=any\n" >/etc/systemd/system/archivist-reach.service.d/90-test.conf; systemctl daemon-reload; systemctl restart archivist-reach'
    restart
    assert_eq "1" "$(unit_property archivist-reach.service ExecMainStatus)" "exit status of the test of the filter"
    assert_contains "$(archivist status)" "address filters have no effect here" "status"
    assert_status 0 archivist doctor
    assert_contains "$output" "hooks in the machine's network, and checks, reach private networks" "the doctor"
    assert_contains "$(journal --unit=$service --lines=20 --output=cat --catalog)" "systemd's address filter has no effect on this machine" "journal"
    assert_system_running
}

cases a_renderer_in_a_namespace_of_its_own_is_covered hooks_of_the_machine_s_network the_network_changes_meanwhile name_servers_are_reached \
    hooks_in_networks_of_their_own the_network_is_a_wall_of_its_own checks_go_where_their_watch_is \
    a_browser_on_the_loopback_is_reached \
    a_filter_without_effect_is_reported
