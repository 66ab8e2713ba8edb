# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_password=$(add --depth 1 "http://reader:s3cretPW@127.0.0.1:$port/")
}

judge() {
    local page
    wait_for 120 is_over "$crawl_password"
    page=$(saved "$crawl_password" ":$port/")
    in_capsule grep -q "MEMBERS ONLY" "$page/dom/output.html" || fail "the DOM is not that of the page"
    in_capsule zgrep -aq "MEMBERS ONLY" "$page/wget/warc/page.warc.gz" || fail "the WARC file has no page"
    assert_eq "" "$(in_capsule grep -rla s3cretPW "$(dirname "$(dirname "$page")")" || true)" "files with the password"
    assert_eq "" "$(in_capsule zgrep -aE "s3cretPW|^Authorization:" "$page/wget/warc/page.warc.gz" || true)" "lines of the WARC file"
    assert_eq "" "$(in_capsule journalctl --all --grep=s3cretPW --output=cat || true)" "messages with the password"
}
