# shellcheck shell=bash
# shellcheck disable=SC2154 # port

# headers gives no titles: the titles are those of the file.
queue() {
    local here
    here=$(dirname "${BASH_SOURCE[0]}")
    sed "s/PORT/$port/" "$here/bookmarks.html" | in_capsule sh -c 'cat >/tmp/bookmarks.html'
    assert_status 3 archivist add --file /tmp/bookmarks.html --plugins headers
    bookmarks_said=$output
    bookmarks_crawl=$(sed -n 's|.* as \(c[0-9]*\)$|\1|p' <<<"$bookmarks_said")
    in_capsule sh -c 'echo "<!doctype html><title>x</title>" >/tmp/page.html'
    assert_status 2 archivist add --file /tmp/page.html
    page_said=$output
}

judge() {
    assert_contains "$bookmarks_said" "Netscape bookmark file: 3 addresses" "the name of the format"
    assert_contains "$bookmarks_said" "line 12: 'javascript:alert(1)' refused" "the bookmarklet"
    assert_contains "$page_said" "an HTML page" "the name of another format"
    wait_for 60 is_over "$bookmarks_crawl"
    assert_eq "http://127.0.0.1:$port/bike http://127.0.0.1:$port/recipe?a=1&b=2" \
        "$(query 'map(.url) | sort' list snapshots "$bookmarks_crawl")" "pages of a bookmark file"
    assert_eq "Repair a bike Soup & bread" "$(query 'map(.title) | sort' list snapshots "$bookmarks_crawl")" "their titles"
    assert_eq "food later" "$(query 'map(.tags[]) | sort' list snapshots "$bookmarks_crawl")" "their tags"
    assert_eq "1700000000 1700000100" "$(query 'map(.bookmarked_at) | sort' list snapshots "$bookmarks_crawl")" "their times"
}
