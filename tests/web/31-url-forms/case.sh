# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    in_capsule sh -c "sed s/PORT/$port/ $web/urls.txt >/tmp/forms.txt"
    assert_status 3 archivist add --file /tmp/forms.txt --plugins headers
    crawl_forms_said=$output
    crawl_forms=$(sed -n 's|.* as \(c[0-9]*\)$|\1|p' <<<"$output")
}

judge() {
    local scheme
    assert_contains "$crawl_forms_said" "queued 14 URLs" "addresses that a browser opens"
    for scheme in magnet data view-source about; do
        assert_contains "$crawl_forms_said" "$scheme: URLs cannot be archived" "addresses of another kind"
    done
    assert_contains "$(query 'map(.url)' list snapshots "$crawl_forms")" "http://127.0.0.1:$port/a%20b%20c" "an address with blanks"
    # A host that does not exist may be tried again later.
    archivist cancel "$crawl_forms" >/dev/null || true
    wait_for 60 is_over "$crawl_forms"
}
