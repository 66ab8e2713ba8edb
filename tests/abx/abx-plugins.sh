#!/bin/bash
# The hooks of the package abx-plugins, unmodified, in a capsule with the package under test: archivist against a table.
# usage: CAPSULE=name DEB=file run [--full]
#
# Short: two pages, once, and two with a browser each. Full: programs by npm and pip, and a crawl of thirteen pages, ROUNDS times
# (default 3), each followed by abx-dl on the same pages one by one, with the same plugins; then the table of everything.
# Skipped where the registries cannot be reached.
# RELEASE_OF_PLUGINS=VERSION tests this release, with hooks-VERSION.tsv; abx-dl has the same version, or DL_VERSION.
# KEEP=DIRECTORY, a new one, has what was said afterwards; judge.py prints the table of what is there so far.
source "$(dirname "$(readlink -f "$0")")/../capsule/lib.sh"
source "$ROOT/tests/capsule/archivist.sh"
source "$ROOT/tests/capsule/registries.sh"

HERE=$ROOT/tests/abx
ROUNDS=${ROUNDS:-3}
DL_VERSION=${DL_VERSION:-${RELEASE_OF_PLUGINS:-1.11.86}}
PAGES=(tour page/1 page/2 page/3 js-title icon redirect/2 document.pdf logo.png download feed.xml notes.txt missing)

out=${KEEP:-$work/said}
mkdir "$out"

clean() { stop_site; }

# What README.md says to install.
prepare() {
    local words
    trust_certificates
    may_skip in_capsule apt-get -q update
    may_skip apt_in_capsule install --no-install-recommends python3-venv git poppler-utils
    mapfile -t words < <(settings)
    began=$EPOCHSECONDS
    may_skip in_capsule env "${words[@]}" archivist plugins add abx ${RELEASE_OF_PLUGINS:+--version "$RELEASE_OF_PLUGINS"}
    cp "$work/fetch" "$out/add"
    figure "plugins add abx: $((EPOCHSECONDS - began)) s, node $(in_capsule /var/lib/archivist/lib/bin/node --version)"
    start_site
}

# crawl NUMBER ARGUMENT…: archives, waits, and keeps what archivist says of it in $out/crawl-NUMBER.
crawl() {
    local dir=$out/crawl-$1 id list
    shift
    mkdir "$dir"
    began=$EPOCHREALTIME
    # Failures are the table's to judge.
    archivist add --wait "$@" >"$work/added" 2>&1 || true
    since "$began" >"$dir/seconds"
    id=$(sed -nE 's/^queued .* as (c[0-9]+)$/\1/p' "$work/added")
    [[ -n $id ]] || fail "add: $(tail -n 5 "$work/added")"
    for list in snapshots results runs; do archivist list $list "$id" --json --limit 0 >"$dir/$list.json"; done
    figure "$id: $(tail -n 2 "$work/added" | head -n 1)"
    assert_no_browser_is_left
}

since() { in_capsule python3 -c 'import sys; print(round(float(sys.argv[2]) - float(sys.argv[1]), 1))' "$1" "$EPOCHREALTIME"; }

# No unit of the work, no process of the hooks' user, no chromium of anybody.
assert_no_browser_is_left() {
    assert_nothing_is_left
    ! in_capsule pgrep -a chromium || fail "a browser is left"
}

# In the capsule, where there is a Python. The table of the full run is for the reader of the log.
every_hook_is_right() {
    if [[ $full == yes ]]; then judge | sed 's/^/figure: /'; else judge; fi
}

judge() {
    in_capsule rm -rf /opt/judge
    in_capsule mkdir /opt/judge
    capsule cp "$HERE" "$CAPSULE:/opt/judge"
    capsule cp "$out" "$CAPSULE:/opt/judge"
    in_capsule "/opt/judge/${HERE##*/}/judge.py" "/opt/judge/${HERE##*/}/hooks${RELEASE_OF_PLUGINS:+-$RELEASE_OF_PLUGINS}.tsv" "/opt/judge/${out##*/}"
}

pages_are_archived() { crawl 1 "${site}page/1" "${site}document.pdf"; }

# A retry of one page hook runs chrome_navigate again, so the tab shows the page and background hooks record it as before.
a_retry_finds_its_page() {
    local id of='[("on_Snapshot__30_chrome_navigate", "on_Snapshot__51_screenshot", "on_Snapshot__21_consolelog") as $name
        | .[] | select(.hook | startswith($name)).status]'
    archivist add --wait --plugins screenshot,consolelog "${site}page/1" >"$work/added" 2>&1 || fail "a page to be retried: $(tail -n 20 "$work/added")"
    id=$(sed -nE 's/^queued .* as (c[0-9]+)$/\1/p' "$work/added")
    before=$(query "$of" list results "$id" --limit 0)
    assert_eq "succeeded succeeded" "${before% *}" "the page and its picture"
    archivist retry "$id" --hook screenshot
    wait_for 120 is_over "$id"
    assert_eq "$before" "$(query "$of" list results "$id" --limit 0)" "the same after a retry of the picture"
    assert_eq 2 "$(query 'map(select(.hook // "" | startswith("on_Snapshot__51_screenshot"))) | length' list runs "$id" --limit 0)" "runs of the picture"
    assert_no_browser_is_left
    echo "$id: a picture taken again"
}

# Each page has a browser of its own, and none is left.
pages_have_browsers_of_their_own() {
    local id
    archivist add --wait --set CHROME_ISOLATION=snapshot --plugins dom,title,screenshot "${site}page/1" "${site}page/2" >"$work/added" 2>&1 ||
        fail "CHROME_ISOLATION=snapshot: $(tail -n 20 "$work/added")"
    id=$(sed -nE 's/^queued .* as (c[0-9]+)$/\1/p' "$work/added")
    assert_eq "2 2 2 2" "$(query '[("[0-9]+_chrome_launch", "53_dom", "54_title", "51_screenshot") as $name
        | map(select((.hook | test("^on_Snapshot__" + $name)) and (.status | IN("succeeded", "noresults")))) | length]' \
        list results "$id" --limit 0)" "browsers and pages with CHROME_ISOLATION=snapshot"
    assert_eq skipped "$(query 'map(select(.hook | startswith("on_CrawlSetup__91_chrome_wait")).status) | unique' list results "$id" --limit 0)" \
        "the wait for a browser of the crawl"
    assert_no_browser_is_left
    echo "$id: a browser for each page"
}

# The same in a network that each crawl has to itself: the port of a browser is on no loopback but its crawl's.
crawls_have_networks_of_their_own() {
    local id port=${site%/} host_drop_in=/etc/archivist/archivist.conf.d/91-network.conf
    local network_drop_in=/run/systemd/system/archivist-network@.service.d
    in_capsule sh -c "mkdir -p ${host_drop_in%/*} $network_drop_in; printf '[Hooks]\nNetwork=private\n' >$host_drop_in
        printf '[Service]\nEnvironment=LOOPBACK_PORTS=${port##*:}\n' >$network_drop_in/test.conf
        systemctl daemon-reload; systemctl reload $service"
    archivist add --wait --plugins dom,title,screenshot "${site}page/1" "${site}page/2" >"$work/added" 2>&1 ||
        fail "Network=private: $(tail -n 20 "$work/added")"
    id=$(sed -nE 's/^queued .* as (c[0-9]+)$/\1/p' "$work/added")
    assert_eq "2 2 2" "$(query '[("on_Snapshot__53_dom", "on_Snapshot__54_title", "on_Snapshot__51_screenshot") as $name
        | map(select((.hook | startswith($name)) and (.status | IN("succeeded", "noresults")))) | length]' \
        list results "$id" --limit 0)" "pages with Network=private"
    assert_no_browser_is_left
    in_capsule sh -c "rm -r $host_drop_in $network_drop_in; systemctl daemon-reload; systemctl reload $service"
    echo "$id: a network of its own"
}

rounds_alternating_with_abx_dl() {
    local round
    setup_dl
    for ((round = 1; round <= ROUNDS; round++)); do
        crawl "$round" --depth 1 "${site}tour"
        assert_eq "${#PAGES[@]}" "$(evaluate length <"$out/crawl-$round/snapshots.json")" "pages"
        run_dl "$round"
    done
}

# The set-up printed what the registries do not have, and the plugins that need it do not run.
what_is_missing_is_said() {
    local plugin
    for plugin in $(sed -nE 's/^  .* is not installed: .*\(for (.*)\)$/\1/p' "$out/add" | tr -d , | tr ' ' '\n' | sort -u); do
        assert_eq true "$(query "any(.plugins[]; .name == \"$plugin\" and .skipped != null)" plugins)" "plugin $plugin is skipped"
    done
    figure "$(grep -c ' is not installed: ' "$out/add" || true) programs are missing"
}

# abx-dl in an environment of its own, with archivist's library and plugins, as the hooks' user.
setup_dl() {
    local words
    mapfile -t words < <(settings)
    in_capsule python3 -m venv /opt/abx-dl
    may_skip in_capsule env "${words[@]}" /opt/abx-dl/bin/pip install --quiet --no-cache-dir "abx-dl==$DL_VERSION" 'jambo<0.2'
    in_capsule install -d -o archivist-hook -g archivist-hook /srv/abx-dl /srv/abx-dl/home
    chosen=$(query '[.plugins[] | select(.skipped == null and (.directory | startswith("/var/lib/")) and
        any(.hooks[]; contains("_BinaryRequest__") | not)).name] | join(",")' plugins)
}

# run_dl ROUND: page by page; it may neither fetch a program nor follow links.
run_dl() {
    local lib=/var/lib/archivist/lib page dir=$out/dl-$1
    mkdir "$dir"
    in_capsule install -d -o archivist-hook -g archivist-hook "/srv/abx-dl/$1"
    began=$EPOCHREALTIME
    for page in "${PAGES[@]}"; do
        in_capsule install -d -o archivist-hook -g archivist-hook "/srv/abx-dl/$1/${page//\//_}"
        in_capsule systemd-run --wait --pipe --quiet --collect --unit=abx-dl --uid=archivist-hook --gid=archivist-hook \
            --property=RuntimeMaxSec=400 --working-directory="/srv/abx-dl/$1/${page//\//_}" \
            -E HOME=/srv/abx-dl/home -E "PATH=$lib/bin:$lib/pip/venv/bin:$lib/npm/node_modules/.bin:/usr/local/bin:/usr/bin:/bin" \
            -E VIRTUAL_ENV=$lib/pip/venv -E UV_OFFLINE=1 -E UV_PYTHON_DOWNLOADS=never -E PIP_NO_INDEX=1 -E npm_config_offline=true \
            -E LIB_DIR=$lib -E NODE_PATH=$lib/npm/node_modules -E NODE_MODULES_DIR=$lib/npm/node_modules \
            -E ABX_PLUGINS_DIR=/var/lib/archivist/abx-plugins -E CHROME_BINARY=/usr/bin/chromium \
            /opt/abx-dl/bin/abx-dl dl --no-install --plugins "$chosen" --dir "/srv/abx-dl/$1/${page//\//_}" "$site$page" >"$work/dl.log" 2>&1 ||
            echo "abx-dl on $page: $(tail -n 1 "$work/dl.log")"
        mkdir "$dir/${page//\//_}"
        capsule cp "$CAPSULE:/srv/abx-dl/$1/${page//\//_}/index.jsonl" "$dir/${page//\//_}/index.jsonl" || true
    done
    since "$began" >"$dir/seconds"
    figure "abx-dl, round $1: $(<"$dir/seconds") s"
}

full=no
case ${1-} in
    "") ;;
    --full) full=yes ;;
    *) bail "usage: CAPSULE=name DEB=file run [--full]" ;;
esac
if [[ $full == yes ]]; then
    cases what_is_missing_is_said a_retry_finds_its_page pages_have_browsers_of_their_own crawls_have_networks_of_their_own \
        rounds_alternating_with_abx_dl every_hook_is_right
else
    cases what_is_missing_is_said pages_are_archived a_retry_finds_its_page pages_have_browsers_of_their_own crawls_have_networks_of_their_own every_hook_is_right
fi
