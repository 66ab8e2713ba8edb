# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/80-web.sh
queue() {
    crawl_slow=$(add --plugins wget --set WGET_TIMEOUT=10 "http://127.0.0.1:$port/")
}

judge() {
    local page
    wait_for 60 is_over "$crawl_slow"
    page=$(saved "$crawl_slow" ":$port/")
    assert_eq succeeded "$(result "$crawl_slow" ":$port/" wget status)" "wget"
    in_capsule grep -q "src='picture/0.png'" "$page/wget/$(result "$crawl_slow" ":$port/" wget output)" ||
        fail "the links are not converted"
}
