# shellcheck shell=bash
# Archives the cases of tests/web in two tests, each with HALF of them.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

WEB=$ROOT/tests/web

# Each case.sh defines `queue`, which adds pages without waiting and keeps what it needs, and `judge`, which waits and looks at
# what was saved. $port is the port of its server, $web its directory in the capsule.
all_names() { (cd "$WEB" && printf "%s\n" [0-9]*/case.sh | sed s,/case.sh,,); }

# The names of this half.
SECOND_HALF=53
case_names() {
    local name number
    for name in $(all_names); do
        number=$((10#${name%%-*}))
        if [[ ($HALF == first && $number -lt $SECOND_HALF) || ($HALF == second && $number -ge $SECOND_HALF) ]]; then echo "$name"; fi
    done
}

clean() {
    local name
    for name in $(case_names); do in_capsule systemctl stop "test-web-$name.service" 2>/dev/null || true; done
    in_capsule rm -rf /opt/web
    forget_configuration
}

prepare() {
    local name
    # With more pages at once than by default, browsers reach their time limits on two processors. A tab has more time to open.
    configure <<<$'[Config]\nCHROMIUM_TIMEOUT=180'
    in_capsule rm -rf /opt/web
    capsule cp "$WEB" "$CAPSULE:/opt/web"
    for name in $(case_names); do start_server "$name"; done
    for name in $(case_names); do wait_for 20 answers "$(port_of "$name")"; done
}

# Ports from 18400 on, in the order of the names of both halves, which may run at the same time in two capsules of one network.
port_of() { echo $((18400 + 100 * release_number + $(all_names | grep -nx "$1" | cut -d: -f1))); }

# A case without a server gets that of titles.
start_server() {
    local program=server.py
    [[ -e $WEB/$1/server.py ]] || program=../titles.py
    in_capsule systemd-run --quiet --collect --unit="test-web-$1" --property=Type=exec --property=WorkingDirectory=/opt/web/"$1" \
        python3 -B "$program" "$(port_of "$1")"
}

answers() { in_capsule bash -c "exec 3<>/dev/tcp/127.0.0.1/$1" 2>/dev/null; }

# saved CRAWL PATH: the directory of the page of the crawl whose URL has this path.
saved() { query "map(select(.url | endswith(\"$2\"))) | .[0] | field(\"directory\")" list snapshots "$1" --limit 0; }

# result CRAWL PATH PLUGIN FIELD: of the page with this path.
result() {
    local id
    id=$(query "map(select(.url | endswith(\"$2\"))) | .[0].id" list snapshots "$1" --limit 0)
    query "of(\"$3\") | map(select(.owner == \"$id\")) | .[0] | .$4 // \"\"" list results "$1" --limit 0
}

# load_case NAME: defines queue and judge of a case.
load_case() {
    # shellcheck disable=SC2034 # for the case
    port=$(port_of "$1") web=/opt/web/$1
    # shellcheck source=/dev/null
    source "$WEB/$1/case.sh"
}

# All pages are queued before the first is judged: as many browsers at once as two processors bear.
queues() {
    local name twice
    # The variables of all cases are kept together.
    twice=$(grep -ohE "\bcrawl_[a-z_0-9]+=" "$WEB"/*/case.sh | sort | uniq -d)
    assert_eq "" "$twice" "variables of two cases with the same name"
    for name in $(case_names); do
        load_case "$name"
        queue
    done
    # shellcheck disable=SC2046 # words
    keep $(compgen -v | grep -E '^crawl_' || true)
}

# What waits for a server is judged after the others.
judges() {
    local name
    for name in $(case_names); do
        grep -q '^# Judged last' "$WEB/$name/case.sh" && echo "1 $name" || echo "0 $name"
    done | sort -s -k 1,1 | cut -d ' ' -f 2 | sed 's/^[0-9]*-//; s/-/_/g; s/^/judge_/'
}
for name in $(case_names); do
    eval "judge_$(sed 's/^[0-9]*-//; s/-/_/g' <<<"$name")() { needs queues; load_case $name; judge; }"
done

# The crawls of the other cases are queued, and stay so.
after_failure() { true; }

mapfile -t judges < <(judges)
cases queues "${judges[@]}"
