# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
shown=(no-type plain twice broken.xhtml good.xhtml nul wide.txt svg-title tag-title head-405 data-icon svg-icon camera 'a;b=1;c' a//b "c'd" 'e(f)')

queue() {
    crawl_types=$(add --plugins dom,title,headers,favicon "${shown[@]/#/http://127.0.0.1:$port/}" \
        "http://127.0.0.1:$port/document.pdf" "http://127.0.0.1:$port/sound" "http://127.0.0.1:$port/attached")
}

judge() {
    local path
    wait_for 150 is_over "$crawl_types"
    for path in "${shown[@]}"; do
        in_capsule grep -q SHOWN "$(saved "$crawl_types" "/$path")/dom/output.html" || fail "/$path: not its content"
    done
    assert_eq "not a page: application/pdf" "$(result "$crawl_types" /document.pdf dom output)" "dom of /document.pdf"
    assert_eq "not a page: the server offers a download" "$(result "$crawl_types" /attached dom output)" "dom of /attached"
    assert_eq RIGHT "$(result "$crawl_types" /svg-title title output)" "title of /svg-title"
    for path in data-icon svg-icon; do
        assert_eq favicon.svg "$(result "$crawl_types" "/$path" favicon output)" "icon of /$path"
    done
}
