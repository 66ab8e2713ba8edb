# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/80-web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_names=$(add --plugins wget,title "$base/caf%E9.html" "$base/%93%FA%96%7B.html")
    crawl_gallery=$(add --depth 1 --plugins wget,outlinks "$base/gallery")
}

judge() {
    local urls
    wait_for 60 is_over "$crawl_names"
    assert_eq CAFE "$(in_capsule cat "$(saved "$crawl_names" /caf%E9.html)/title/title.txt")" "title"
    assert_eq succeeded "$(result "$crawl_names" /caf%E9.html wget status)" "wget"
    wait_for 60 is_over "$crawl_gallery"
    urls=$(query 'map(.url) | sort | join(" ")' list snapshots "$crawl_gallery" --limit 0)
    assert_contains "$urls" "/full?img=1" "next pages"
    assert_eq "" "$(grep -o 'full@\|gallery\.html' <<<"$urls")" "names of files are no addresses"
}
