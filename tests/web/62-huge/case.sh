# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
huge=(megabytes rows nested built one-line attributes)

queue() { crawl_huge=$(add --plugins dom,title "${huge[@]/#/http://127.0.0.1:$port/}"); }

judge() {
    local path
    wait_for 150 is_over "$crawl_huge"
    for path in "${huge[@]}"; do
        in_capsule grep -qE "END OF PAGE|INNERMOST" "$(saved "$crawl_huge" "/$path")/dom/output.html" || fail "/$path: not its content"
        assert_eq huge "$(result "$crawl_huge" "/$path" title output)" "title of /$path"
    done
}
