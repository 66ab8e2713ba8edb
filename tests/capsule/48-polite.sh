#!/bin/bash
# Limits for hosts: a delay between starts, Retry-After, robots.txt; hosts do not delay each other. A full
# disk stops new work until there is space.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

data=/var/lib/archivist
log=/srv/archivist-polite.log

clean() {
    in_capsule systemctl stop test-hosts.service 2>/dev/null || true
    unmount $data
    in_capsule rm -f /srv/hosts.py $log
    forget_configuration
}

prepare() {
    plugin testpage <<'SH'
#!/bin/sh
echo page >page.txt
SH
    start_hosts
}

# Starts two servers that log host, path and time of each request. Sets $port.
start_hosts() {
    in_capsule sh -c 'cat >/srv/hosts.py' <<'PY'
import sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

class Host(BaseHTTPRequestHandler):
    def do_GET(self):
        me = self.server.server_address[0]
        with open(sys.argv[1], "a") as log:
            log.write(f"{me} {time.time():.3f} {self.path}\n")
        status, headers, body = 200, {}, b"<title>x</title>"
        if self.path.startswith("/busy"):
            status, headers = 503, {"Retry-After": "10"}
        elif self.path == "/robots.txt":
            body = b"User-agent: *\nCrawl-delay: 3\n" if me == "127.0.0.2" else b""
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(body))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments):
        pass

first = ThreadingHTTPServer(("127.0.0.1", 0), Host)
second = ThreadingHTTPServer(("127.0.0.2", first.server_address[1]), Host)
threading.Thread(target=second.serve_forever, daemon=True).start()
print("listening on", first.server_address[1], flush=True)
first.serve_forever()
PY
    in_capsule systemd-run --quiet --collect --unit=test-hosts --property=Type=exec python3 /srv/hosts.py $log
    wait_for 20 hosts_listen >/dev/null
    port=$(hosts_listen)
}

hosts_listen() {
    in_capsule journalctl --quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID="$(unit_property test-hosts InvocationID)" |
        sed -n 's/^listening on //p' | grep .
}

# pages HOST PATH COUNT: prints COUNT URLs.
pages() {
    local n
    for ((n = 1; n <= $3; n++)); do echo "http://$1:$port/$2$n"; done
}

# gaps HOST PATTERN: prints the milliseconds between successive requests.
gaps() {
    in_capsule awk -v host="$1" -v path="$2" '$1 == host && $3 ~ path {
        if (last) printf "%d\n", ($2 - last) * 1000
        last = $2 }' $log
}

# assert_gaps HOST PATTERN COUNT LEAST: between requests.
assert_gaps() { assert_each "$3" "$4" "from one request for $1$2 to the next" "$(gaps "$1" "$2")"; }

# assert_starts CRAWL COUNT LEAST: between the starts of its pages. Requests follow when a worker and a hook have started, which takes
# half a second longer or shorter on a busy machine.
assert_starts() {
    assert_each "$2" "$3" "from one start of a page of $1 to the next" \
        "$(query 'map(.started_at | seconds) | sort | [.[1:], .[:-1]] | transpose | map((.[0] - .[1]) * 1000 | round)' list snapshots "$1" --limit 0)"
}

# assert_each COUNT LEAST WHAT TIMES: as many times, in milliseconds.
assert_each() {
    local time found=0
    # shellcheck disable=SC2086 # words
    set -- "$1" "$2" "$3" $4
    for time in "${@:4}"; do
        found=$((found + 1))
        ((time >= $2)) || fail "$time ms $3, not $2"
    done
    assert_eq "$1" "$found" "number of times $3"
    figure "$3:" "${@:4}" "ms"
}

first_request() { in_capsule awk -v host="$1" -v path="$2" '$1 == host && $3 ~ path { printf "%d", $2 * 1000; exit }' $log; }

# codes ID: prints the codes of the reasons.
codes() { query '.reasons | map(.code)' why "$1"; }

a_delay_holds_for_all_crawls_and_up_no_other_host() {
    local first second
    configure <<'END'
[Orchestrator]
HostDelaySec=4s
END
    first=$(pages 127.0.0.1 a 4 | in_capsule archivist add --json --plugins headers - | evaluate '.crawl')
    second=$( (pages 127.0.0.1 b 1; pages 127.0.0.3 c 1) |
        in_capsule archivist add --json --plugins testpage - | evaluate '.crawl')
    wait_for 20 requested 127.0.0.1 /a
    assert_contains "$(archivist why "$first")" "127.0.0.1_$port: its host gets no further page before" "why $first"
    wait_for 60 is_over "$first"
    wait_for 60 is_over "$second"
    assert_starts "$first" 3 4000
    assert_gaps 127.0.0.1 '^/a' 3 2000
    # Other hosts do not wait for a slow host: the page of the third starts long before the last one of the first.
    local slow fast
    slow=$(query 'map(.started_at) | max' list snapshots "$first")
    fast=$(query 'map(select(.url | contains("127.0.0.3"))) | only.started_at' list snapshots "$second")
    [[ $fast < $slow ]] || fail "127.0.0.3 began at $fast, the last of 127.0.0.1 at $slow"
}

requested() { [[ -n $(first_request "$1" "$2") ]]; }

what_hosts_ask_for() {
    local crawl second
    configure <<'END'
[Orchestrator]
SnapshotsPerCrawl=1
# The refused page is sealed, so that its host alone waits.
HttpAttempts=1
END
    crawl=$(pages 127.0.0.1 busy 2 | in_capsule archivist add --json --plugins headers - | evaluate '.crawl')
    wait_for 20 left_alone "$crawl"
    second=$(query 'map(select(.status == "queued")) | only.id' list snapshots "$crawl")
    assert_contains "$(archivist why "$second")" "(Retry-After)" "why $second"
    wait_for 60 is_over "$crawl"
    assert_gaps 127.0.0.1 '^/busy' 1 9000

    crawl=$(pages 127.0.0.2 r 3 | in_capsule archivist add --json --plugins headers - | evaluate '.crawl')
    wait_for 60 is_over "$crawl"
    assert_starts "$crawl" 2 3000
    assert_gaps 127.0.0.2 '^/r[0-9]' 2 1500
    assert_eq 1 "$(in_capsule grep -c '^127.0.0.2 .* /robots.txt' $log)" "requests for robots.txt"
}

left_alone() {
    [[ $(query 'map(select(.status == "sealed")) | length' list snapshots "$1") -eq 1 && $(codes "$1") == *host-delay* ]]
}

status_says() { [[ $(unit_property $service StatusText) == *"$1"* ]]; }

a_full_disk_is_waited_out() {
    local crawl waiting
    stop_all
    in_capsule sh -c "mount -t tmpfs -o size=64M,mode=755 tmpfs $data; systemd-tmpfiles --create"
    configure <<'END'
[Archive]
MinFreeSpace=32M
END
    in_capsule fallocate -l 48M $data/ballast
    archivist add --wait --plugins testpage http://127.0.0.1/full >"$work/waits" 2>&1 &
    waiting=$!
    wait_for 20 grep -q "waits: no start is possible: .*MiB are free" "$work/waits"
    crawl=$(query '.[0].id' list crawls --limit 1)
    assert_eq pressure "$(codes "$crawl")" "why $crawl"
    assert_contains "$(archivist status)" "Blocked: nothing is started: " "status"
    # systemd may process the status text later than the bus delivers other answers.
    wait_for 10 status_says "MiB are free"
    assert_nothing "workers" in_capsule systemctl list-units --plain --no-legend 'archivist-crawl-*.service'
    in_capsule rm $data/ballast
    wait "$waiting" || fail "the command that waited: $(<"$work/waits")"
    assert_eq sealed "$(crawl_status "$crawl")" "status of $crawl"
    assert_contains "$(journal -u $service)" "resources are available again" "words of the orchestrator"
    assert_nothing_is_left
}

cases a_delay_holds_for_all_crawls_and_up_no_other_host what_hosts_ask_for a_full_disk_is_waited_out
