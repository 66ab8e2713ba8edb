# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_names=$(add --plugins wget,title "$base/caf%E9.html" "$base/%93%FA%96%7B.html" "$base/conflict" "$base/gzip" "$base/download" "$base/document")
    crawl_gallery=$(add --depth 1 --plugins wget,outlinks "$base/gallery")
}

judge() {
    local path urls
    wait_for 60 is_over "$crawl_names"
    for path in /caf%E9.html /conflict /gzip /download /document; do
        assert_eq succeeded "$(result "$crawl_names" "$path" wget status)" "wget of $path"
        in_capsule test -f "$(saved "$crawl_names" "$path")/wget/$(result "$crawl_names" "$path" wget output)" ||
            fail "$path: the main file is not there"
    done
    assert_eq CAFE "$(in_capsule cat "$(saved "$crawl_names" /caf%E9.html)/title/title.txt")" "title"
    assert_eq 4 "$(in_capsule find "$(saved "$crawl_names" /conflict)/wget" -name "*.png" | wc -l)" "pictures of /conflict"
    wait_for 60 is_over "$crawl_gallery"
    urls=$(query 'map(.url) | sort | join(" ")' list snapshots "$crawl_gallery" --limit 0)
    assert_contains "$urls" "/full?img=1" "next pages"
    [[ $urls != *full@* && $urls != *gallery.html* ]] || fail "names of files are no addresses: $urls"
}
