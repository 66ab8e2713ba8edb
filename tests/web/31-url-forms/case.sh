# shellcheck shell=bash
# shellcheck disable=SC2154 # port

queue() {
    local here
    here=$(dirname "${BASH_SOURCE[0]}")
    sed "s/PORT/$port/" "$here/urls.txt" | in_capsule sh -c 'cat >/tmp/forms.txt'
    assert_status 3 archivist add --file /tmp/forms.txt --plugins headers
    forms_said=$output
    forms_crawl=$(sed -n 's|.* as \(c[0-9]*\)$|\1|p' <<<"$forms_said")
}

judge() {
    local scheme
    assert_contains "$forms_said" "queued 14 URLs" "addresses that a browser opens"
    for scheme in magnet data view-source about; do
        assert_contains "$forms_said" "$scheme: URLs cannot be archived" "addresses of another kind"
    done
    assert_contains "$(query 'map(.url)' list snapshots "$forms_crawl")" "http://127.0.0.1:$port/a%20b%20c" "an address with blanks"
    # A host that does not exist may be tried again later.
    archivist cancel "$forms_crawl" >/dev/null || true
    wait_for 60 is_over "$forms_crawl"
}
