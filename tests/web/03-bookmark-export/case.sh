# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# headers gives no titles: the titles are those of the file.
queue() {
    in_capsule sh -c "sed s/PORT/$port/ $web/bookmarks.html >/tmp/bookmarks.html; echo '<!doctype html><title>x</title>' >/tmp/page.html"
    assert_status 3 archivist add --file /tmp/bookmarks.html --plugins headers
    crawl_bookmarks_said=$output
    crawl_bookmarks=$(sed -n 's|.* as \(c[0-9]*\)$|\1|p' <<<"$output")
    assert_status 2 archivist add --file /tmp/page.html
    assert_contains "$output" "an HTML page" "the name of another format"
}

judge() {
    assert_contains "$crawl_bookmarks_said" "Netscape bookmark file: 3 addresses" "the name of the format"
    assert_contains "$crawl_bookmarks_said" "line 12: 'javascript:alert(1)' refused" "the bookmarklet"
    wait_for 60 is_over "$crawl_bookmarks"
    assert_eq "http://127.0.0.1:$port/bike http://127.0.0.1:$port/recipe?a=1&b=2" \
        "$(query 'map(.url) | sort' list snapshots "$crawl_bookmarks")" "pages of a bookmark file"
    assert_eq "Repair a bike Soup & bread" "$(query 'map(.title) | sort' list snapshots "$crawl_bookmarks")" "their titles"
    assert_eq "food later" "$(query 'map(.tags[]) | sort' list snapshots "$crawl_bookmarks")" "their tags"
    assert_eq "2023-11-14T22:13:20Z 2023-11-14T22:15:00Z" "$(query 'map(.bookmarked_at) | sort' list snapshots "$crawl_bookmarks")" "their times"
}
