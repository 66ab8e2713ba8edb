#!/bin/bash
# A site is archived at depth 1, every worker and hook a unit; what is there afterwards, and what is not there any more.
# In a short run on every release.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

# The pages have time on a machine that has much to do. The one that never ends takes as long as a server may take for its answer.
LIMITS=(--set WGET_TIMEOUT=25 --set HEADERS_TIMEOUT=25 --set CHROMIUM_TIMEOUT=240
    --set SCREENSHOT_TIMEOUT=120 --set PDF_TIMEOUT=120 --set DOM_TIMEOUT=120)
edit=/etc/systemd/system/archivist-hook-wget-.service.d

clean() {
    in_capsule rm -rf $edit
    in_capsule systemctl daemon-reload
    stop_site
    forget_configuration
}

prepare() {
    start_site
    plugin testhold <<'SH'
#!/bin/sh
echo "holding on $1" >&2
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
echo held >held.txt
SH
    plugin testbeside on_Snapshot__10_testbeside.daemon.bg.sh <<'SH'
#!/bin/sh
trap 'echo ended >ended.txt; exit 0' TERM
echo ready
while :; do sleep 0.1; done
SH
    plugin testrefuse <<'SH'
#!/bin/sh
case $1 in
*/missing) echo "this page is refused" | tee reason.txt >&2; exit 1 ;;
*) exit 0 ;;
esac
SH
    configure </dev/null
}

# listed LIST: the number of pages of the crawl that are on a list of the archive.
listed() {
    local list id count=0
    list=$(in_capsule cat "/var/lib/archivist/archive/$1/index.html")
    for id in $(query 'map(.id)' list snapshots "$crawl"); do
        [[ $list != *"/$id/index.html\""* ]] || count=$((count + 1))
    done
    echo $count
}

# Links, images, a redirect, a 404, a slow page, an endless page; one of them fails in parts, which is status 3.
archives_a_site() {
    local pages='(page/1|redirect/3|missing|slow|endless|hostile|js-title)?$'
    assert_status 3 archivist add --depth 1 --wait --tag site --plugins wget,favicon,headers,screenshot,pdf,dom,title,outlinks,hashes,testrefuse \
        "${LIMITS[@]}" --set "URL_ALLOWLIST=^${site//./\\.}$pages" "$site"
    crawl=$(sed -n 's/^queued 1 URL as \(c[0-9]*\)$/\1/p' <<<"$output")
    keep crawl
    assert_eq sealed "$(crawl_status "$crawl")" "status of the crawl"
    assert_eq "8 sealed" "$(query '[length, (map(.status) | unique[])]' list snapshots "$crawl")" "the snapshots"
    # The tag is that of the given page.
    assert_eq "8 1" "$(listed "sites/$(sed 's,^http://,,; s,/$,,; s,:,_,' <<<"$site")") $(listed tags/site)" "pages in the lists of site and tag"
    # How far a browser gets with a page that never ends is a matter of the machine's speed.
    assert_eq "missing/testrefuse" "$(query '.crawl | [.results[] as $result | .snapshots[] | select($result.status == "failed" and .id == $result.owner)
        | select((.url | endswith("/endless") | not) or ($result.plugin | IN("chromium", "dom", "pdf", "screenshot") | not))
        | (.url | split("/") | last) + "/" + $result.plugin] | sort' show "$crawl")" "what failed"
    assert_nothing_is_left
}

# page PATH FILTER: about the snapshot of that page.
page() { query "map(select(.url == \"$site$1\")) | only | $2" list snapshots "$crawl" --limit 0; }

keeps_what_was_there() {
    needs archives_a_site
    local path
    capsule cp "$(dirname "$0")/archive/look.py" "$CAPSULE:/opt/look.py"
    look "" "Archivist test site"
    look page/1 "Page 1"
    look slow "Slow page"
    # shellcheck disable=SC2016 # a title that is a command stays a title
    look hostile '$(touch /tmp/pwned) "<b>'
    assert_eq '$(touch /tmp/pwned) "<b>' "$(page hostile '.title')" "title of the hostile page"
    ! in_capsule test -e /tmp/pwned || fail "a page's title was run"
    in_capsule grep -q 'made by script' "$(page js-title '.directory')/dom/output.html" || fail "the DOM is that before the script"
    for path in "" hostile missing endless; do
        assert_contains "$(page "$path" '.directory')" "/var/lib/archivist/archive/$(date -u +%Y)" "directory of a snapshot"
    done
    assert_eq site "$(page "" '.tags')" "tags"
}

look() {
    in_capsule python3 /opt/look.py "$(page "$1" '.directory')" "$site$1" "$2" || fail "what is kept of '$1'"
}

tells_the_story() {
    needs archives_a_site
    local id number story
    id=$(page page/1 '.id') number=${id#s}
    story=$(journal --output=json ARCHIVIST_SNAPSHOT_ID="$number" |
        gojq --raw-output '"\(.UNIT // ._SYSTEMD_UNIT) \(.ARCHIVIST_CRAWL_ID) \(.ARCHIVIST_PLUGIN) \(.ARCHIVIST_HOOK) \(.ARCHIVIST_URL)"')
    assert_contains "$story" "archivist-snapshot-$number.service ${crawl#c} null null $site""page/1" "story: the worker"
    assert_contains "$story" "archivist-hook-wget-$id.service ${crawl#c} wget on_Snapshot__12_wget.finite.bg $site""page/1" "story: a hook"
    assert_contains "$story" "archivist-orchestrator.service ${crawl#c}" "story: the orchestrator"
    assert_contains "$(archivist logs "$id")" "snapshot $id is sealed" "archivist logs"
    assert_contains "$(archivist logs "$id" --hook wget)" "$id wget: succeeded" "archivist logs --hook"
    story=$(journal --catalog -u $service ARCHIVIST_CRAWL_ID="${crawl#c}")
    assert_contains "$story" "The crawl has no open pages" "explanations of key events"
    [[ ! $story =~ ARCHIVIST_[A-Z]+ ]] || fail "an explanation without its value: ${BASH_REMATCH[0]}"
}

answers_in_json() {
    needs archives_a_site
    local id verb
    id=$(page missing '.id')
    for verb in "status" "status $crawl" "list crawls" "list snapshots" "list results" "list runs" "list hosts" "show $crawl" "show $id" plugins doctor config; do
        # shellcheck disable=SC2086 # words
        query 'type' $verb >/dev/null || fail "archivist $verb --json"
    done
    assert_eq failed "$(query 'map(.status) | unique' list results "$crawl" --status failed)" "list --status"
    assert_eq ended "$(query 'map(.status) | unique' list runs "$id")" "the runs of a snapshot"
    assert_eq 3 "$(query 'length' list snapshots --limit 3)" "list --limit"
    assert_contains "$(archivist show "$id")" "this page is refused" "archivist show"
    assert_eq "1 crawl hook snapshot sealed" "$(archivist add --json --wait --plugins headers "${site}page/2" |
        gojq --raw-output --slurp '[.[0].accepted, (.[1:] | map(.event) | unique[]),
            (map(select(.event == "crawl")) | last.crawl.status)] | join(" ")')" "add --wait --json"
}

# Of pages, crawls, hosts and the machine, as their results show it.
shows_health() {
    needs archives_a_site
    local failed
    failed=$(query 'length' list results "$crawl" --status failed --limit 0)
    assert_eq "$failed" "$(query '.crawl.crawl.uses | field("failed")' show "$crawl")" "failed results of the crawl"
    assert_eq "$failed" "$(query 'only | .uses | field("failed")' list hosts "$crawl")" "failed results of the host"
    [[ $(archivist show "$(page missing '.id')") =~ Health:\ [0-9]+%:\ [1-9][0-9]*\ of\ [0-9]+\ failed ]] || fail "no health of a page"
    [[ $(archivist status) =~ Health:\ [0-9]+%: ]] || fail "no health of the machine"
    assert_contains "$(archivist doctor || true)" "health" "archivist doctor"
}

# The picture is well-formed XML without a script, has every run, and knows when what worked in the background was ready.
draws_what_ran() {
    needs archives_a_site
    archivist plot "$crawl" | in_capsule python3 -c '
import sys, xml.etree.ElementTree as tree
root = tree.parse(sys.stdin).getroot()
tips = [group[0].text for group in root.iter("{http://www.w3.org/2000/svg}g")]
units = [tip for tip in tips if tip.startswith("archivist-")]
runs = int(sys.argv[1])
assert len(units) == runs, (len(units), runs)
assert not list(root.iter("{http://www.w3.org/2000/svg}script"))
for name in "chromium_launch", "wget":
    assert any(name in tip and "ready after" in tip for tip in units), name
assert all("CPU" in tip for tip in units if "ended after" in tip), units' "$(query 'length' list runs "$crawl" --limit 0)" || fail "archivist plot"
}

# hold: sets $held, the id of a crawl one of whose hooks waits; $snapshot is the number of its snapshot.
hold() {
    in_capsule rm -f $signs/go
    held=$(add --plugins testhold,testbeside "http://held.test/$1")
    wait_for 20 has_unit "archivist-hook-testhold-s*.service"
    snapshot=$(query '.[0].id | number' list snapshots "$held")
}

# The names of units, and which cgroup is below which.
is_the_tree_that_was_designed() {
    local number tree unit user
    hold tree
    number=${held#c}
    tree=/archivist.slice/archivist-crawl.slice/archivist-crawl-$number.slice
    for unit in "archivist-crawl-$number" "archivist-snapshot-$snapshot" "archivist-hook-testhold-s$snapshot" "archivist-hook-testbeside-s$snapshot"; do
        assert_eq "$tree/$unit.service" "$(unit_property "$unit.service" ControlGroup)" "control group of $unit"
    done
    assert_eq /archivist.slice/$service "$(unit_property $service ControlGroup)" "control group of the orchestrator"
    assert_eq archivist "$(unit_property "archivist-snapshot-$snapshot.service" User)" "user of a worker"
    user=$(unit_property "archivist-hook-testhold-s$snapshot.service" User)
    [[ $user =~ ^archivist-hook-([1-9]|1[0-6])$ ]] || fail "user of a hook: $user"
    assert_eq "$user" "$(unit_property "archivist-hook-testbeside-s$snapshot.service" User)" "user of another hook of its crawl"
    assert_contains "$(in_capsule systemctl --no-pager status "archivist-hook-*-s$snapshot.service")" testbeside "systemctl status with a pattern"
    assert_contains "$(in_capsule systemctl --no-pager status $service)" "crawl=" "STATUS= of the orchestrator"
    assert_contains "$(archivist status)" "archivist-hook-testhold-s$snapshot.service" "archivist status"
    assert_eq "" "$(in_capsule sh -c "tr '\\0' '\\n' </proc/\$(systemctl show --value -p MainPID archivist-snapshot-$snapshot)/environ | grep -i token")" \
        "tokens in a worker's environment"
    assert_eq "holding on --url=http://held.test/tree" "$(journal --output=cat \
        ARCHIVIST_SNAPSHOT_ID="$snapshot" ARCHIVIST_PLUGIN=testhold _UID="$(in_capsule id -u "$user")")" "what a hook wrote to standard error"
    in_capsule touch $signs/go
    wait_for 30 is_over "$held"
    assert_eq sealed "$(crawl_status "$held")" "the crawl that was held"
    in_capsule test -e "$(query '.[0].directory' list snapshots "$held")/testbeside/ended.txt" || fail "a daemon was not told to end"
    assert_nothing_is_left
}

stopping_the_slice_leaves_nothing() {
    hold slice
    in_capsule systemctl stop "archivist-crawl-${held#c}.slice"
    wait_for 20 is_over "$held"
    assert_eq cancelled "$(crawl_status "$held")" "crawl whose slice was stopped"
    assert_eq cancelled "$(query 'map(.status) | unique' list snapshots "$held")" "its snapshots"
    assert_nothing_is_left
}

cancels_and_retries() {
    needs archives_a_site
    hold cancel
    keep held
    archivist cancel "$held"
    wait_for 20 is_over "$held"
    assert_eq cancelled "$(crawl_status "$held")" "the cancelled crawl"
    assert_nothing_is_left

    assert_status 2 archivist retry "$crawl" --hook nosuch
    local id
    id=$(page missing '.id')
    archivist retry "$id" --hook testrefuse
    wait_for 30 is_over "$crawl"
    assert_eq 2 "$(query 'of("testrefuse") | length' list runs "$id")" "runs of the hook that was tried again"
    # The server answered 404, so the page is visited again as a whole.
    assert_eq 2 "$(query 'of("dom") | length' list runs "$id")" "runs of another hook"
    assert_nothing_is_left
}

# What archivist-retry.timer starts.
retries_all_that_failed() {
    needs cancels_and_retries
    local id
    id=$(page missing '.id')
    in_capsule systemctl start archivist-retry.service
    wait_for 60 is_over "$crawl"
    assert_eq 3 "$(query 'of("testrefuse") | length' list runs "$id")" "runs of a hook that failed"
    assert_eq 3 "$(query 'of("dom") | length' list runs "$id")" "runs of one that did not, of the same visit"
    assert_eq cancelled "$(crawl_status "$held")" "what was cancelled"
    archivist retry --failed --hook nosuch >/dev/null
    assert_nothing_is_left
}

# `systemctl edit archivist-hook-wget-.service`: what an administrator says holds from the next hook on.
obeys_systemctl_edit() {
    local uses='.plugins | map(select(.name == "wget")) | only.uses | [.succeeded, .failed]' before
    before=$(query "$uses" plugins)
    in_capsule sh -c "mkdir -p $edit; printf '[Service]\nRuntimeMaxSec=1\n' >$edit/override.conf; systemctl daemon-reload"
    assert_status 3 archivist add --wait --plugins wget --set WGET_TIMEOUT=60 "${site}hang"
    assert_contains "$output" "time limit" "a wget hook with RuntimeMaxSec=1"
    in_capsule sh -c "rm -r $edit; systemctl daemon-reload"
    assert_status 0 archivist add --wait --plugins wget "${site}page/3"
    assert_eq "$((${before% *} + 1)) $((${before#* } + 1))" "$(query "$uses" plugins)" "how wget fared"
    assert_nothing_is_left
}

cases archives_a_site keeps_what_was_there tells_the_story answers_in_json shows_health draws_what_ran \
    is_the_tree_that_was_designed stopping_the_slice_leaves_nothing cancels_and_retries retries_all_that_failed \
    obeys_systemctl_edit
