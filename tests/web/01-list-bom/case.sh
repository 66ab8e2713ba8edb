# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# The list as it is, with CR alone at the end of lines, and in UTF-16. headers gives no titles.
queue() {
    local list
    list=$(in_capsule sed "s/PORT/$port/" "$web/urls.txt")
    crawl_mark=$(add --plugins headers - <<<"$list")
    crawl_mark_cr=$(tr -d '\n' <<<"$list" | add --plugins headers -)
    crawl_mark_utf16=$(iconv -f UTF-8 -t UTF-16LE <<<"$list" | add --plugins headers -)
}

judge() {
    local crawl
    for crawl in "$crawl_mark" "$crawl_mark_cr" "$crawl_mark_utf16"; do
        wait_for 60 is_over "$crawl"
        assert_eq "http://127.0.0.1:$port/one http://127.0.0.1:$port/two" \
            "$(query 'map(.url) | sort' list snapshots "$crawl")" "pages of a list with a byte order mark"
        assert_eq "succeeded succeeded" "$(query 'of("headers") | map(.status)' list results "$crawl")" "their results"
        in_capsule grep -q '"final_url"' "$(saved "$crawl" /one)/headers/headers.json" || fail "no headers of the first page"
    done
}
