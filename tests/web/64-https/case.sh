# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local site=secure.test:$port
    in_capsule cp "$web/authority.pem" /usr/local/share/ca-certificates/archivist-test.crt
    in_capsule update-ca-certificates >/dev/null 2>&1
    in_capsule sh -c 'echo "127.0.0.1 secure.test mixed.test plain.example.com" >>/etc/hosts'
    crawl_https=$(add --plugins wget,headers,title,dom,screenshot,outlinks "https://$site/mixed" "https://$site/services")
    crawl_plain=$(add --plugins wget,headers,dom "http://plain.example.com/")
    # Both pages of this crawl have one browser.
    crawl_strict=$(add --depth 1 --plugins wget,headers,dom,outlinks "http://$site/strict")
}

judge() {
    local page plugin
    wait_for 90 is_over "$crawl_https"
    wait_for 90 is_over "$crawl_strict"
    for page in /mixed /services; do
        for plugin in wget headers title dom screenshot; do
            assert_eq succeeded "$(result "$crawl_https" "$page" "$plugin" status)" "$plugin of $page"
        done
    done
    assert_contains "$(in_capsule cat "$(saved "$crawl_https" /mixed)/dom/output.html")" "MIXED" "the page with mixed content"
    ! in_capsule grep -q "<p>SCRIPT OF" "$(saved "$crawl_https" /mixed)/dom/output.html" || fail "a script that browsers refuse ran"
    # Chromium changes no address of a reserved domain such as .test. Not the site of the other port, although its certificate is good.
    wait_for 60 is_over "$crawl_plain"
    page=$(saved "$crawl_plain" plain.example.com/)
    in_capsule grep -q "PLAIN SITE" "$page/dom/output.html" || fail "the browser opened https instead of http"
    in_capsule grep -q '"http://plain.example.com/"' "$page/headers/headers.json" || fail "headers of another address"
    for page in /strict /strict/next; do
        for plugin in wget headers dom; do
            assert_eq succeeded "$(result "$crawl_strict" "$page" "$plugin" status)" "$plugin of $page"
        done
        assert_contains "$(in_capsule cat "$(saved "$crawl_strict" "$page")/dom/output.html")" "STRICT $page" "the page $page"
    done
    # The file may be a mount.
    in_capsule sh -c 'sed "/secure\.test/d" /etc/hosts >/tmp/hosts; cat /tmp/hosts >/etc/hosts; rm /tmp/hosts'
    in_capsule rm /usr/local/share/ca-certificates/archivist-test.crt
    in_capsule update-ca-certificates --fresh >/dev/null 2>&1
}
