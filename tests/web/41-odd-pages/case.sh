# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
odd_pages=(service-worker other-site media prints opens prompts writes blob mail stays framed animated webgl xml json text drawing)

queue() { crawl_odd=$(add --plugins dom,pdf,screenshot --set PDF_TIMEOUT=180 --set SCREENSHOT_TIMEOUT=180 "${odd_pages[@]/#/http://127.0.0.1:$port/}"); }

judge() {
    local path plugin
    wait_for 300 is_over "$crawl_odd"
    for path in "${odd_pages[@]}"; do
        in_capsule grep -q SHOWN "$(saved "$crawl_odd" "/$path")/dom/output.html" || fail "/$path: not its content"
        for plugin in pdf screenshot; do
            assert_eq succeeded "$(result "$crawl_odd" "/$path" $plugin status)" "$plugin of /$path"
        done
    done
}
