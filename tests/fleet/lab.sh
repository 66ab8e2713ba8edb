# shellcheck shell=bash
# A lab: three machines of a fleet, a PostgreSQL and a web server, each in a network namespace of its own. See lab.
#
#   $network                 name of the network and prefix of the capsules: $network-1, $network-2, $network-3
#   $lab                     its directory
#     web.log                requests to the web server, see web.py
#     db, spare              file systems of the servers; db.log, spare.log; socket.db, socket.spare

NODES=(1 2 3)
# Addresses of the web server: each is a host of its own for archivist.
HOSTS=24
PASSWORD=correct-horse
# Leases of tests are shorter than those of users, which are at least 30 s.
LEASE=12

# lab_of NAME: sets $network and $lab.
lab_of() {
    network=$1
    lab=/run/archivist-lab-$1
}

# shellcheck source=/dev/null
source "$ROOT/tests/machine/lib/capsule-here.sh"

# on N COMMAND…: runs a command on a node.
on() {
    local n=$1
    shift
    capsule run "$network-$n" "$@"
}

database_url() { echo "postgresql://archivist@$DATABASE_ADDRESS/archivist?sslmode=disable"; }

lab_is_up() { [[ -e $lab/up ]]; }

# lab_up RELEASE DEB
lab_up() {
    local release=$1 deb=$2 fleet n boots=()
    fleet=$(fleet_deb "$deb")
    mkdir -p "$lab"
    chmod 755 "$lab"
    network create "$network" n1 n2 n3 db spare web clone
    start_web
    for n in "${NODES[@]}"; do
        boot_node "$n" "$release" --deb "$deb" --deb "$fleet" >"$lab/boot.$n" 2>&1 &
        boots+=($!)
    done
    database_create "$PASSWORD"
    for n in "${boots[@]}"; do wait "$n" || { cat "$lab"/boot.* >&2; die "a node did not boot"; }; done
    for n in "${NODES[@]}"; do configure_node "$n"; done
    join_nodes
    echo "$release" >"$lab/up"
}

# release_of N RELEASE: prints the release of a node. In a full run, the fleet has two.
release_of() { [[ $1 == 3 && $2 == trixie && ${EXTENT-} == full ]] && echo bookworm || echo "$2"; }

# boot_node N RELEASE ARGUMENT…: the clocks of the nodes since boot differ by a day.
boot_node() {
    local n=$1 release
    release=$(release_of "$1" "$2")
    shift 2
    capsule boot "$network-$n" "$release" --network "$(network path "$network" "n$n")" --clock $((n * 86400)) "$@"
}

start_web() {
    local n addresses=()
    for ((n = 1; n <= HOSTS; n++)); do addresses+=("10.77.1.$n"); done
    network address "$network" web "${addresses[@]}"
    network run "$network" web setsid python3 "$ROOT/tests/fleet/web.py" "$lab/web.log" </dev/null >"$lab/web.err" 2>&1 9>&- &
    disown
}

# A plugin that requests its page once and nothing else; links of the page become pages. The header names the page.
configure_node() {
    on "$1" sh -c 'mkdir -p /etc/archivist/plugins/testget /etc/archivist/archivist.conf.d
        cat >/etc/archivist/plugins/testget/on_Snapshot__20_testget.sh
        chmod 755 /etc/archivist/plugins/testget/on_Snapshot__20_testget.sh
        echo "{\"type\": \"object\", \"properties\": {}}" >/etc/archivist/plugins/testget/config.json
        printf "%s\n" "[Archive]" "Plugins=testget" "[Hooks]" "Network=host" "Reach=private" \
            "[Orchestrator]" "HostWorkers=1" "HostDelaySec=3s" "WorkersPerKind=2" "WorkersMax=6" "SnapshotsPerCrawl=2" "RetrySec=1s" "RetryMaxSec=2s" "AttemptsMax=50" \
            >/etc/archivist/archivist.conf.d/90-lab.conf' <<'SH'
#!/bin/bash
for word; do
    case $word in
        --url=*) url=${word#--url=} ;;
        --snapshot-id=*) page=${word#--snapshot-id=} ;;
    esac
done
rest=${url#http://}
exec 3<>"/dev/tcp/${rest%%/*}/80"
printf 'GET /%s HTTP/1.0\r\nX-Page: %s\r\n\r\n' "${rest#*/}" "$page" >&3
cat <&3 >page.txt
grep -q '^HTTP/1.0 200' page.txt
sed -nE 's/^<a href="([^"]*)">.*/{"type": "Snapshot", "url": "\1"}/p' page.txt
SH
}

# The first node creates the fleet, the others join it.
join_nodes() {
    local n url
    url=$(database_url)
    for n in "${NODES[@]}"; do
        echo "$PASSWORD" | on "$n" sh -c 'umask 77; cat >/root/password'
        on "$n" archivist fleet "$([[ $n -eq 1 ]] && echo init || echo join)" "$url" --name "n$n" --password-file /root/password
        [[ $n -gt 1 ]] || { move_clock; sql "UPDATE archivist.fleet SET lease_ms = $((LEASE * 1000))"; }
    done
}

# sql STATEMENT…: on the primary.
sql() { sql_on "$(<"$lab/primary")" archivist "$@"; }

# The clock of the database is a day ahead of the nodes, and 1 % faster.
move_clock() {
    sql "CREATE OR REPLACE FUNCTION archivist.clock() RETURNS timestamptz LANGUAGE sql STABLE PARALLEL SAFE AS
        'SELECT now() + interval ''1 day'' + (now() - to_timestamp($EPOCHSECONDS)) * 0.01'"
}

lab_down() {
    local n
    for n in "${NODES[@]}" clone; do capsule stop "$network-$n" 2>/dev/null || true; done
    network remove "$network"
    for n in db spare; do
        ! mountpoint --quiet "$lab/$n" || umount --lazy "$lab/$n"
    done
    rm -rf --one-file-system "$lab"
}
