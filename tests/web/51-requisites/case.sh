# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_requisites=$(add --plugins wget "http://127.0.0.1:$port/" "http://127.0.0.1:$port/brotli" "http://127.0.0.1:$port/zstd")
}

judge() {
    local file page
    wait_for 60 is_over "$crawl_requisites"
    page=$(saved "$crawl_requisites" ":$port/")
    for file in three.css d.png e.png f.png g.png h.png f.woff2 x.xsl y.xsl; do
        assert_eq 1 "$(in_capsule find "$page/wget" -name "$file" | wc -l)" "files of the name $file"
    done
    for file in brotli zstd; do
        in_capsule grep -q shown "$(saved "$crawl_requisites" "/$file")/wget/$(result "$crawl_requisites" "/$file" wget output)" ||
            fail "the page with the coding of /$file is not readable"
    done
}
