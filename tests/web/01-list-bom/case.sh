# shellcheck shell=bash
# shellcheck disable=SC2154 # port

# The list as it is, with CR alone at the end of lines, and in UTF-16.
queue() {
    local here
    here=$(dirname "${BASH_SOURCE[0]}")
    bom_crawls=()
    bom_crawls+=("$(sed "s/PORT/$port/" "$here/urls.txt" | add --plugins headers -)")
    bom_crawls+=("$(sed "s/PORT/$port/" "$here/urls.txt" | tr -d '\n' | add --plugins headers -)")
    bom_crawls+=("$(sed "s/PORT/$port/" "$here/urls.txt" | iconv -f UTF-8 -t UTF-16LE | add --plugins headers -)")
}

judge() {
    local crawl
    for crawl in "${bom_crawls[@]}"; do
        wait_for 60 is_over "$crawl"
        assert_eq "http://127.0.0.1:$port/one http://127.0.0.1:$port/two" \
            "$(query 'map(.url) | sort' list snapshots "$crawl")" "pages of a list with a byte order mark"
        assert_eq "succeeded succeeded" "$(query 'map(.status)' list results "$crawl")" "their results"
    done
}
