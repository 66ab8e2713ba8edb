# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_sniff=$(add --plugins title "$base/script" "$base/comment" "$base/xml" "$base/none" "$base/utf16" "$base/bom")
}

judge() {
    local path
    wait_for 60 is_over "$crawl_sniff"
    for path in /script /comment /xml /none /utf16 /bom; do
        assert_eq "国家图书馆 公告" "$(in_capsule cat "$(saved "$crawl_sniff" "$path")/title/title.txt")" "title of $path"
    done
}
