# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_identity=$(add --plugins wget,headers,dom "http://127.0.0.1:$port/")
}

judge() {
    local page asked
    wait_for 60 is_over "$crawl_identity"
    page=$(saved "$crawl_identity" ":$port/")
    asked=$(in_capsule grep -o "Mozilla/5.0 .*|" "$page/dom/output.html")
    assert_contains "$asked" "|en-US,en;q=0.9|" "languages"
    in_capsule grep -qF "$asked" "$page/headers/headers.json" || fail "curl has another identity than the browser: $asked"
    in_capsule grep -qF "$asked" "$page/wget/$(result "$crawl_identity" ":$port/" wget output)" ||
        fail "wget has another identity than the browser: $asked"
}
