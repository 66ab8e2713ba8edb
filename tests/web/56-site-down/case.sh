# shellcheck shell=bash disable=SC2154 # $port is that of tests/capsule/web.sh
queue() {
    crawl_down=$(add --plugins wget,headers,title,dom,screenshot,hashes "http://127.0.0.1:$port/page")
    crawl_nowhere=$(add --plugins wget,headers,title,dom,wacz http://nowhere.invalid/)
}

# Every file of the page with its digest, but what the worker writes about it.
files_of_page() { in_capsule bash -c "cd '$1' && find . -type f ! -name 'index.*' -exec sha256sum {} + | sort"; }

# What was skipped for this reason, how often it was tried, and which hooks of the page had a unit: none that needs a page, and no
# other after the tab had failed. While it takes longer than ReadyTimeoutSec=, hooks start that may ask the site themselves.
judge_nowhere() {
    local results='map(select(.status == "skipped" and (.error | contains("net::ERR_")))) | [length, (map(.attempts) | unique[])]'
    local units='map(select(.kind == "hook" and (.owner | startswith("s")))) | map(select(.plugin == "chromium")) as $tabs |
        map(select(.plugin != "chromium" and (.plugin == "dom" or (.started_at as $at | all($tabs[]; $at < .started_at or .ended_at < $at)))).plugin) | unique'
    wait_for 120 is_over "$crawl_nowhere"
    assert_eq "5 1" "$(query "$results" list results "$crawl_nowhere" --limit 0)" "what was skipped of a page that cannot be reached ($1)"
    assert_eq "" "$(query "$units" list runs "$crawl_nowhere" --limit 0)" "units of hooks that could not succeed ($1)"
}

judge() {
    local directory before mode
    judge_nowhere "first visit"
    in_capsule archivist retry "$crawl_nowhere" --hook title
    judge_nowhere "retry of a hook"
    wait_for 120 is_over "$crawl_down"
    directory=$(saved "$crawl_down" /page)
    before=$(files_of_page "$directory")
    assert_contains "$before" dom/output.html "files of the page"
    for mode in silent error; do
        in_capsule curl --silent --fail --output /dev/null "http://127.0.0.1:$port/mode/$mode"
        in_capsule archivist retry --all "$crawl_down"
        wait_for 120 is_over "$crawl_down"
        assert_eq "$before" "$(files_of_page "$directory")" "files after a retry of a site that is down ($mode)"
        assert_eq "" "$(query 'map(select(.status == "failed").plugin)' list results "$crawl_down")" "results that a retry lost ($mode)"
        assert_contains "$(result "$crawl_down" /page dom error)" "the retry failed: " "note ($mode)"
        assert_contains "$(in_capsule cat "$directory/index.html")" "the retry failed: " "page about the snapshot ($mode)"
    done
    in_capsule curl --silent --fail --output /dev/null "http://127.0.0.1:$port/mode/ok"
    in_capsule archivist retry --all "$crawl_down"
    wait_for 120 is_over "$crawl_down"
    assert_eq "" "$(result "$crawl_down" /page dom error)" "note after a retry that succeeded"
    in_capsule grep -q "THE ARTICLE" "$directory/dom/output.html" || fail "not the article"
    in_capsule test ! -e "$directory/.earlier" || fail "files of the earlier visit are left"
}
