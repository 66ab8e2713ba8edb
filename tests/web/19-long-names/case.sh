# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_long=$(add --plugins wget "$base/query" "$base/dirs" "$base/paths")
}

judge() {
    local path page
    wait_for 60 is_over "$crawl_long"
    for path in /query /dirs /paths; do
        page=$(saved "$crawl_long" "$path")
        assert_eq succeeded "$(result "$crawl_long" "$path" wget status)" "wget of $path"
        assert_eq 2 "$(in_capsule find "$page/wget" -name "*.png" | wc -l)" "pictures of $path"
        assert_eq 0 "$(in_capsule grep -c "src='http" "$page/wget/$(result "$crawl_long" "$path" wget output)" || true)" \
            "pictures of $path that lead to the Web"
    done
}
