# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_slow=$(add --plugins wget --set WGET_TIMEOUT=10 "http://127.0.0.1:$port/")
    crawl_few=$(add --plugins wget --set WGET_TIMEOUT=5 "http://127.0.0.1:$port/few")
}

judge() {
    local page
    wait_for 60 is_over "$crawl_slow"
    page=$(saved "$crawl_slow" ":$port/")
    assert_eq succeeded "$(result "$crawl_slow" ":$port/" wget status)" "wget"
    in_capsule grep -q "src='picture/0.png'" "$page/wget/$(result "$crawl_slow" ":$port/" wget output)" ||
        fail "the links are not converted"
    wait_for 60 is_over "$crawl_few"
    assert_contains "$(result "$crawl_few" /few wget error)" "are missing" "what a time limit cut off"
    archivist retry "$crawl_few" --hook wget
    wait_for 60 is_over "$crawl_few"
    page=$(saved "$crawl_few" /few)
    assert_eq "continued the copy of an earlier attempt" "$(result "$crawl_few" /few wget error)" "wget, the second time"
    assert_eq 24 "$(in_capsule find "$page/wget" -name "*.png" | wc -l)" "pictures of both attempts"
}
