# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_memory=$(add --plugins dom,title,screenshot "$base/good1" "$base/spin" "$base/good2" "$base/late-spin" "$base/alerts" "$base/good3")
}

judge() {
    local path
    wait_for 150 is_over "$crawl_memory"
    for path in /good1 /good2 /good3 /spin /late-spin /alerts; do
        in_capsule grep -qE "good page|shown" "$(saved "$crawl_memory" "$path")/dom/output.html" || fail "$path: not its content"
        assert_eq succeeded "$(result "$crawl_memory" "$path" screenshot status)" "screenshot of $path"
    done
    assert_contains "$(in_capsule cat "$(saved "$crawl_memory" /spin)/chromium/navigation.json")" "script that did not end" "note of /spin"
}
