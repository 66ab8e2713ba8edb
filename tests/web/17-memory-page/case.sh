# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_memory=$(add --plugins dom,title,screenshot "$base/good1" "$base/spin" "$base/good2" "$base/late-spin" "$base/good3")
    # The scripts that do not end take the processors until their time is over; this page needs one.
    crawl_alerts=$(add --plugins dom,screenshot --set TIMEOUT=180 "$base/alerts")
}

judge() {
    local path
    wait_for 150 is_over "$crawl_memory"
    for path in /good1 /good2 /good3 /spin /late-spin; do is_saved "$crawl_memory" $path; done
    wait_for 150 is_over "$crawl_alerts"
    is_saved "$crawl_alerts" /alerts
    assert_contains "$(in_capsule cat "$(saved "$crawl_memory" /spin)/chromium/navigation.json")" "script that did not end" "note of /spin"
}

# is_saved CRAWL PATH
is_saved() {
    in_capsule grep -qE "good page|shown" "$(saved "$1" "$2")/dom/output.html" || fail "$2: not its content"
    assert_eq succeeded "$(result "$1" "$2" screenshot status)" "screenshot of $2"
}
