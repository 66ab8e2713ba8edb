# shellcheck shell=bash disable=SC2154
# For the tests in this directory: faults of three machines, a database and a network, see lab.sh. The lab is shared by all of
# them: the first test boots it, and `lab down $CAPSULE` removes it.
#
# The judges are the log of the web server and PostgreSQL, not the nodes: each page is recorded once, and no node requests a page
# of a host too early.
source "$(dirname "${BASH_SOURCE[0]}")/../tap/cases.sh"

ROOT=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
: "${CAPSULE:?name of the lab}" "${DEB:?path of the package}"
for tap_part in packaging/lib/report packaging/lib/apt tests/fleet/database tests/fleet/lab; do
    # shellcheck source=/dev/null
    source "$ROOT/$tap_part.sh"
done
lab_of "$CAPSULE"
# In milliseconds, as configured on each node.
DELAY=3000
# Part of the paths of this run: tests share the log of the web server.
run=$EPOCHSECONDS

prepare() { prepare_lab; }

# Boots the lab if no earlier test has.
prepare_lab() {
    command -v ip gojq >/dev/null || skip "ip and gojq are required: apt install iproute2 gojq"
    [[ -n $(programs) ]] || skip "there is no PostgreSQL: apt install postgresql"
    lab_is_up || lab_up "${RELEASE-trixie}" "${OLDER_DEB:-$DEB}"
    sql "UPDATE archivist.fleet SET lease_ms = $((LEASE * 1000))"
}

assert_eq() {
    [[ $1 == "$2" ]] || fail "$3: expected '$1', got '$2'"
}

# assert_contains TEXT PART WHAT
assert_contains() {
    [[ $1 == *"$2"* ]] || fail "$3: '$2' is not in '${1:0:4000}'"
}

now_ms() { echo $((${EPOCHREALTIME/./} / 1000)); }

# between LEAST MOST: sleeps for a random number of milliseconds.
sleep_between() {
    local ms=$(($1 + (RANDOM * 32768 + RANDOM) % ($2 - $1 + 1)))
    echo "waiting $ms ms"
    sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))"
}

# urls NAME PAGES HOSTS MS: prints the URLs of pages that the server answers after MS milliseconds.
urls() {
    local n
    for ((n = 0; n < $2; n++)); do echo "http://10.77.1.$((n % $3 + 1))/wait/$4/$1-$run-$n"; done
}

# add N NAME PAGES HOSTS MS: adds a crawl on node N, and prints its number.
add() {
    local n=$1
    shift
    urls "$@" | on "$n" timeout 30 archivist add --json - | gojq --raw-output '.crawl[1:]'
}

# is_recorded CRAWL PAGES
is_recorded() { [[ $(sql "SELECT count(*) FROM archivist.page WHERE crawl = $1 AND status <> 'open'" 2>&1) == "$2" ]]; }

# has_recorded CRAWL LEAST
has_recorded() { (($(sql "SELECT count(*) FROM archivist.page WHERE crawl = $1 AND status <> 'open'") >= $2)); }

# started NAME LEAST: as many pages of the name were requested.
started() { (($(grep -c "/$1-$run-" "$lab/web.log") >= $2)); }

# assert_recorded_once CRAWL NAME PAGES: each page is in one state, with one result, of a node that requested it.
assert_recorded_once() {
    assert_eq "$3 $3 $3" "$(sql "SELECT count(*), count(DISTINCT url), count(*) FILTER (WHERE status = 'sealed') FROM archivist.page
        WHERE crawl = $1")" "pages, different URLs and sealed pages of crawl $1"
    assert_eq "$3 $3" "$(sql "SELECT count(*), count(*) FILTER (WHERE r.state = 'succeeded') FROM archivist.result r
        JOIN archivist.page p ON p.id = r.page WHERE p.crawl = $1")" "results, and successful results of crawl $1"
    local foreign
    foreign=$(comm -23 <(sql "SELECT n.name || ' ' || p.url FROM archivist.page p JOIN archivist.node n ON n.id = p.node
        WHERE p.crawl = $1" | sort -u) <(sed -nE "s,^[0-9.]+ 10\.77\.0\.([123]) ([0-9.]+) (/.*/$2-$run-[0-9]+)$,n\1 http://\2\3,p" "$lab/web.log" | sort -u))
    assert_eq "" "$foreign" "pages that were recorded by a node that did not request them"
}

# assert_polite NAME: no two requests to a host were closer than its delay, on any nodes. Prints what the server saw.
assert_polite() {
    local verdict
    verdict=$(python3 "$ROOT/tests/fleet/judge.py" "$lab/web.log" "/$1-$run-" $DELAY)
    figure "${tap_current//_/ }: $verdict"
    [[ $verdict == *" early=0" ]] || fail "requests came too early: $verdict"
}

# holders: prints "node host" for each lease.
holders() {
    sql "SELECT n.name, h.key FROM archivist.host h JOIN archivist.node n ON n.id = h.owner WHERE h.due_at IS NULL ORDER BY 1, 2"
}

# Prints the number of the node with the most leases.
busiest() { holders | sed 's/^n\([0-9]\).*/\1/' | sort | uniq -c | sort -rn | awk '{ print $2; exit }'; }

some_node_holds() { [[ -n $(busiest) ]]; }

holds() { [[ $'\n'$(holders) == *$'\n'"n$1 "* ]]; }

# power_off N, power_on N: a machine without warning, and its boot with the same disk.
power_off() { capsule kill "$network-$1"; }

is_on() { [[ " $(capsule list | cut -f 1 | paste -sd ' ') " == *" $network-$1 "* ]]; }

power_on() { boot_node "$1" "$(<"$lab/up")" --keep; }

# set_wall_clock N SECONDS RATE: reboots a node with a clock that is ahead and drifts.
set_wall_clock() {
    local n=$1
    need_packages gcc libc6-dev
    cc -shared -fPIC -O2 -Wall -o "$work/wall-clock.so" "$ROOT/tests/fleet/wall_clock.c" -ldl
    capsule cp "$work/wall-clock.so" "$network-$n:/usr/local/lib/wall-clock.so"
    # shellcheck disable=SC2016 # for the node
    on "$n" sh -c 'echo "$@" >/etc/wall-clock; echo /usr/local/lib/wall-clock.so >/etc/ld.so.preload; sync' sh "$2" "$3" $EPOCHSECONDS
    power_off "$n"
    power_on "$n"
}

reset_wall_clocks() {
    local n
    for n in "${NODES[@]}"; do
        is_on "$n" || continue
        on "$n" test -e /etc/ld.so.preload || continue
        on "$n" rm /etc/ld.so.preload
        power_off "$n"
        power_on "$n"
    done
}

# taken_over_after MS NAME N: prints the longest time in milliseconds from a moment until another node than N requested a page of
# a host that N had requested pages of shortly before.
taken_over_after() {
    awk -v since="$1" -v name="/$2-$run-" -v lost="10.77.0.$3" 'index($4, name) {
        if ($1 * 1000 < since) owner[$3] = $2
        else if (owner[$3] == lost && $2 != lost) { if ($1 * 1000 - since > most) most = $1 * 1000 - since; owner[$3] = $2 } }
        END { printf "%d\n", most }' "$lab/web.log"
}

# Who is connected, who holds what, and what is left to do.
describe_state() {
    local n
    sql "SELECT 'node', name, seen, archivist.clock() - seen, wanting, draining, drains, ended FROM archivist.node"
    sql "SELECT 'host', key, owner, due_at, lease_until - archivist.clock() FROM archivist.host ORDER BY 2"
    sql "SELECT 'pages', crawl, status, wanted, node, count(*) FROM archivist.page GROUP BY 2, 3, 4, 5 ORDER BY 2"
    for n in "${NODES[@]}"; do
        ! is_on "$n" || on "$n" journalctl --no-pager --lines 15 --unit archivist-fleet --unit archivist-orchestrator
    done
}

# Ends what a failed case left: all machines run and are connected.
after_failure() { mend_lab; }

mend_lab() {
    local n
    for n in n1 n2 n3 db spare; do network mend "$network" "$n"; done
    database_empty "$(<"$lab/primary")"
    database_runs "$(<"$lab/primary")" || database_start "$(<"$lab/primary")"
    for n in "${NODES[@]}"; do
        ! is_on "$n" || capsule thaw "$network-$n"
        is_on "$n" || power_on "$n"
        on "$n" systemctl kill --signal=CONT archivist-orchestrator.service archivist-fleet.service
    done
}
