# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_routes=$(add --depth 1 --plugins title,outlinks,chromium "http://127.0.0.1:$port/")
}

judge() {
    wait_for 120 is_over "$crawl_routes"
    assert_eq "app #/about" "$(in_capsule cat "$(saved "$crawl_routes" '/#/about')/title/title.txt")" "title of a route"
    assert_eq "app #!/old" "$(in_capsule cat "$(saved "$crawl_routes" '/#!/old')/title/title.txt")" "title of another route"
    assert_eq 0 "$(query 'map(select(.url | endswith("#top"))) | length' list snapshots "$crawl_routes" --limit 0)" "fragments that are no routes"
    assert_eq 1 "$(query 'map(select(.url | endswith("/by-script"))) | length' list snapshots "$crawl_routes" --limit 0)" \
        "links of shadow roots; the hook said: $(archivist logs --hook outlinks "$crawl_routes" | tail -n 20)"
}
