# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_duplicates=$(in_capsule sed "s/PORT/$port/" "$web/urls.txt" | add --plugins headers -)
}

judge() {
    wait_for 60 is_over "$crawl_duplicates"
    assert_eq "http://127.0.0.1:$port/same http://127.0.0.1:$port/same#a" \
        "$(query 'map(.url) | sort' list snapshots "$crawl_duplicates")" "each page once"
}
