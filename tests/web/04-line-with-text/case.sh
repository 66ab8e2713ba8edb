# shellcheck shell=bash
# shellcheck disable=SC2154 # port

queue() {
    local here
    here=$(dirname "${BASH_SOURCE[0]}")
    sed "s/PORT/$port/g" "$here/urls.txt" | in_capsule sh -c 'cat >/tmp/lines.txt'
    assert_status 3 archivist add --file /tmp/lines.txt --plugins headers
    lines_said=$output
    lines_crawl=$(sed -n 's|.* as \(c[0-9]*\)$|\1|p' <<<"$lines_said")
}

judge() {
    assert_contains "$lines_said" "line 2: " "two addresses"
    assert_contains "$lines_said" "several addresses" "two addresses"
    assert_contains "$lines_said" "line 7: " "a title after one blank"
    assert_contains "$lines_said" "text after the address" "a title after one blank"
    assert_contains "$lines_said" "line 11: " "text before an address"
    assert_contains "$lines_said" "line 12: " "a comma at the end"
    wait_for 60 is_over "$lines_crawl"
    assert_eq "/angle /c /e /f /g /markdown /soup /wiki/Insert_(effects)" \
        "$(query 'map(.url | sub("^http://[^/]*"; "")) | sort' list snapshots "$lines_crawl")" "pages"
    assert_eq "A title Grandma's soup a link" \
        "$(query 'map(.title | values) | sort' list snapshots "$lines_crawl")" "titles in the list"
}
