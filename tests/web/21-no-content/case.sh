# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port path urls=()
    for path in 204 205 304 empty 404 false-gzip short cut-chunk error-page; do urls+=("$base/$path"); done
    crawl_content=$(add --plugins dom,pdf,wget "${urls[@]}")
}

judge() {
    local path
    wait_for 120 is_over "$crawl_content"
    for path in 204 205 304; do
        assert_eq "the answer has no content ($path)" "$(result "$crawl_content" "/$path" pdf output)" "pdf of /$path"
        assert_eq noresults "$(result "$crawl_content" "/$path" dom status)" "dom of /$path"
    done
    assert_eq "the answer has no content (200)" "$(result "$crawl_content" /empty pdf output)" "pdf of /empty"
    assert_eq "skipped the answer has no content (404)" \
        "$(result "$crawl_content" /404 pdf status) $(result "$crawl_content" /404 pdf error)" "pdf of /404"
    assert_contains "$(result "$crawl_content" /false-gzip dom error)" ERR_CONTENT_DECODING_FAILED "dom of /false-gzip"
    for path in /short /cut-chunk /error-page; do
        in_capsule grep -q shown "$(saved "$crawl_content" "$path")/dom/output.html" || fail "$path: not its content"
    done
    assert_eq succeeded "$(result "$crawl_content" /error-page wget status)" "wget of /error-page"
    in_capsule grep -q shown "$(saved "$crawl_content" /error-page)/wget/$(result "$crawl_content" /error-page wget output)" ||
        fail "/error-page: not in the copy of wget"
}
