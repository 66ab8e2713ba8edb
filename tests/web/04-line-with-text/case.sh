# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    in_capsule sh -c "sed s/PORT/$port/g $web/urls.txt >/tmp/lines.txt"
    assert_status 3 archivist add --file /tmp/lines.txt --plugins headers
    crawl_lines_said=$output
    crawl_lines=$(sed -n 's|.* as \(c[0-9]*\)$|\1|p' <<<"$output")
}

judge() {
    local refused
    refused=$(sed -n 's/^line \([0-9]*\): .* refused: .*/\1/p' <<<"$crawl_lines_said" | paste -sd' ')
    assert_eq "2 7 11 12" "$refused" "lines with text around an address"
    assert_contains "$crawl_lines_said" "several addresses" "two addresses"
    assert_contains "$crawl_lines_said" "text after the address" "a title after one blank"
    wait_for 60 is_over "$crawl_lines"
    assert_eq "/angle /c /e /f /g /markdown /soup /wiki/Insert_(effects)" \
        "$(query 'map(.url | sub("^http://[^/]*"; "")) | sort' list snapshots "$crawl_lines")" "pages"
    assert_eq "A title Grandma's soup a link" \
        "$(query 'map(.title | values) | sort' list snapshots "$crawl_lines")" "titles in the list"
}
