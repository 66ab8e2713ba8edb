# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_feeds=$(add --depth 1 --plugins title,outlinks "$base/rss.xml" "$base/atom.xml" "$base/sitemap.xml.gz" "$base/list.txt" "$base/feed.json")
    crawl_feed_shown=$(add --depth 1 --plugins title,outlinks,chromium "$base/rss.xml")
}

judge() {
    local number
    wait_for 60 is_over "$crawl_feeds"
    for number in 1 2 3 4 5 6 7; do
        assert_eq 1 "$(query "map(select(.url | endswith(\"/post/$number\"))) | length" list snapshots "$crawl_feeds" --limit 0)" "page $number"
    done
    assert_eq F "$(in_capsule cat "$(saved "$crawl_feeds" /rss.xml)/title/title.txt")" "title of the feed"
    wait_for 60 is_over "$crawl_feed_shown"
    assert_eq 1 "$(query 'map(select(.url | endswith("/post/2"))) | length' list snapshots "$crawl_feed_shown" --limit 0)" "page of a feed that the browser shows"
    assert_eq F "$(in_capsule cat "$(saved "$crawl_feed_shown" /rss.xml)/title/title.txt")" "title of a feed that the browser shows"
}
