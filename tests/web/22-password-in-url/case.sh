# User name and password of a URL reach the server and nothing else.

queue() {
    crawl=$(add --depth 1 "http://reader:s3cretPW@127.0.0.1:$port/")
}

judge() {
    local directory
    wait_for 60 is_over "$crawl"
    directory=$(query '.[0].directory' list snapshots "$crawl")
    assert_contains "$(in_capsule zgrep -a 'MEMBERS ONLY' "$directory/wget/warc/page.warc.gz")" \
        "MEMBERS ONLY" "the WARC has the page"
    assert_contains "$(in_capsule cat "$directory/dom/output.html")" "MEMBERS ONLY" "the DOM"
    assert_eq "" "$(in_capsule grep -rla s3cretPW /var/lib/archivist/archive || true)" "files with the password"
    assert_eq 0 "$(in_capsule sh -c 'journalctl --all | grep -c "s3cret[P]W" || true')" "lines of the journal"
    assert_eq "" "$(in_capsule sh -c "zgrep -a -e s3cretPW -e ^Authorization: \
        $directory/wget/warc/page.warc.gz || true")" "lines of the WARC"
}
