# shellcheck shell=bash
# shellcheck disable=SC2154 # port

queue() {
    local here
    here=$(dirname "${BASH_SOURCE[0]}")
    duplicates_crawl=$(sed "s/PORT/$port/" "$here/urls.txt" | add --plugins headers -)
}

judge() {
    wait_for 60 is_over "$duplicates_crawl"
    assert_eq "http://127.0.0.1:$port/same http://127.0.0.1:$port/same#a" \
        "$(query 'map(.url) | sort' list snapshots "$duplicates_crawl")" "each page once"
}
