# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port path urls=()
    for path in meta meta-slow script script-late other-host post refresh-header chain/1; do urls+=("$base/$path"); done
    crawl_elsewhere=$(add --plugins dom,title,pdf,outlinks,wget "${urls[@]}")
    crawl_again=$(add --plugins dom,pdf,screenshot "$base/reload" "$base/meta-reload" "$base/counter")
}

judge() {
    local path
    wait_for 120 is_over "$crawl_elsewhere"
    wait_for 120 is_over "$crawl_again"
    for path in meta meta-slow script script-late other-host post refresh-header chain/1; do
        assert_eq TARGET "$(in_capsule cat "$(saved "$crawl_elsewhere" "/$path")/title/title.txt")" "title of /$path"
        in_capsule grep -q "TARGET BODY" "$(saved "$crawl_elsewhere" "/$path")/dom/output.html" || fail "/$path: not the last page"
        in_capsule grep -q '/dir/rel"' "$(saved "$crawl_elsewhere" "/$path")/outlinks/urls.jsonl" || fail "/$path: links of another page"
        in_capsule grep -q "TARGET BODY" "$(saved "$crawl_elsewhere" "/$path")/wget/$(result "$crawl_elsewhere" "/$path" wget output)" ||
            fail "/$path: wget saved another page"
    done
    for path in reload meta-reload counter; do
        in_capsule grep -q AGAIN "$(saved "$crawl_again" "/$path")/dom/output.html" || fail "/$path: not its content"
        assert_eq "succeeded succeeded" "$(result "$crawl_again" "/$path" pdf status) $(result "$crawl_again" "/$path" screenshot status)" "/$path"
    done
}
