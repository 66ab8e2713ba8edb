# shellcheck shell=bash disable=SC2034 # variables for the tests
# For the tests in this directory. They archive pages of a server on the loopback interface, so they require no network.
set -euo pipefail

TESTS=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")
ORCHESTRATOR=archivist-orchestrator.service
PAGE_SECONDS=120
work=${AUTOPKGTEST_TMP:-$(mktemp -d)}

fail() {
    echo "failed: $*" >&2
    journalctl --no-pager --quiet --boot --lines=100 >&2 || true
    exit 1
}

# start_site: serves a page, and /held, whose answer waits until the file $work/go exists. Sets $site.
start_site() {
    rm -f "$work/go" "$work/port"
    mkfifo "$work/port"
    python3 "$TESTS/site.py" "$work/go" >"$work/port" 2>"$work/site.log" &
    trap 'kill %1 2>/dev/null || true' EXIT
    read -r -t 20 port <"$work/port" || fail "the site does not listen"
    site=http://127.0.0.1:$port
}

# json EXPRESSION: of Python, about the document on standard input.
json() { python3 -c 'import json, sys; document = json.load(sys.stdin); print(eval(sys.argv[1]))' "$1"; }

# statuses snapshots|results CRAWL: of its pages or hooks, without duplicates.
statuses() { archivist list "$1" "$2" --json | json '" ".join(sorted({row["status"] for row in document}))'; }

# wait_until_sealed CRAWL
wait_until_sealed() {
    local deadline=$((SECONDS + PAGE_SECONDS))
    until [[ $(statuses snapshots "$1") == sealed ]]; do
        ((SECONDS < deadline)) || fail "crawl $1 is not sealed after $PAGE_SECONDS s: $(archivist why "$1")"
        sleep 0.5
    done
}
