# shellcheck shell=bash disable=SC2154 # $port is that of tests/capsule/web.sh
# Judged last: its pages wait for each other, 8 s each.
queue() {
    local base=http://127.0.0.1:$port
    local plugins=wget,headers,title,dom,screenshot,outlinks
    # Pages of a host that asks to wait wait for each other, so these have few hooks.
    crawl_refused=$(add --plugins "$plugins" "$base/seconds" "$base/imf" "$base/rfc850" "$base/asctime" "$base/busy" "$base/none")
    crawl_always=$(add --plugins headers,title,dom "$base/always")
    crawl_missing=$(add --plugins headers,title,dom "$base/missing" "$base/gone")
}

# page CRAWL PATH FILTER: a field of the snapshot of this path.
page() { query "map(select(.url | endswith(\":$port$2\"))) | only | $3" list snapshots "$1"; }

judge() {
    local path file directory
    wait_for 180 is_over "$crawl_refused"
    for path in /seconds /imf /rfc850 /asctime /busy /none; do
        directory=$(page "$crawl_refused" $path .directory)
        assert_eq 200 "$(page "$crawl_refused" $path .http_status)" "status of $path"
        assert_eq ARTICLE "$(in_capsule cat "$directory/title/title.txt")" "title of $path"
        file=$(in_capsule grep -rlI "SLOW DOWN" --exclude=index.jsonl "$directory") || true
        assert_eq "" "$file" "files of a refused visit of $path"
        in_capsule grep -q ARTICLE "$directory/dom/output.html" || fail "$path: not the article"
    done
    assert_eq "" "$(query 'map(select(.url | endswith("/429") or endswith("/503")).url)' list snapshots "$crawl_refused")" "links of refusals"

    wait_for 120 is_over "$crawl_always"
    assert_eq "http 429" "$(page "$crawl_always" /always .reason)" "reason of a page that is always refused"
    assert_eq "" "$(query 'map(select(.owner | startswith("s")) | select(.status == "succeeded" and .plugin != "headers").plugin)' list results "$crawl_always")" "results of a refusal that succeeded"

    wait_for 120 is_over "$crawl_missing"
    assert_eq "404 410" "$(page "$crawl_missing" /missing .http_status) $(page "$crawl_missing" /gone .http_status)" "statuses"
    assert_eq 2 "$(query length list snapshots "$crawl_missing" --http 4xx)" "pages with a status of 4xx"
    assert_eq 1 "$(query length list snapshots "$crawl_missing" --http 404)" "pages with status 404"
    assert_contains "$(in_capsule cat "$(page "$crawl_missing" /gone .directory)/index.html")" "error instead of the page" "index of the page"
    assert_status 3 archivist add --wait --plugins headers "http://127.0.0.1:$port/missing"
    assert_contains "$output" "answered 404" "summary of add --wait"
}
