# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# HTTP/2 alone, HTTP/2 without TLS, a server that demands a certificate; secrets of a watch.

queue() {
    in_capsule sh -c "cp /tmp/check-tls/authority.crt /usr/local/share/ca-certificates/check-tls.crt && update-ca-certificates >/dev/null 2>&1
        install -m 0600 /tmp/check-tls/client.pem /etc/archivist/check-tls.pem"
    archivist watch add w55 "https://localhost:$port/" "http://localhost:$((port + 60))/" "https://localhost:$((port + 61))/" \
        --status daily --lighthouse no --crawl no >/dev/null
    archivist watch add w55client "https://localhost:$((port + 61))/" --status daily --lighthouse no --crawl weekly \
        --set "Header=Authorization: Bearer secret55" --set "SecretHeader=X-Shop: secret55" --set Keyword=Welcome \
        --set ClientCertificate=/etc/archivist/check-tls.pem >/dev/null 2>&1
}

# tls_check URL FIELD: prints a field of the check of this URL.
tls_check() { query "map(select(.url == \"$1\"))[0].$2" watch history w55; }

judge() {
    local state
    archivist watch run --kind status --wait w55 >/dev/null || true
    assert_eq 200 "$(tls_check "https://localhost:$port/" status_code)" "HTTP/2 alone"
    assert_eq "the server speaks HTTP/2 without TLS, which browsers do not" \
        "$(tls_check "http://localhost:$((port + 60))/" error)" "HTTP/2 without TLS"
    assert_eq "TLS: the server demands a client certificate; set ClientCertificate=" \
        "$(tls_check "https://localhost:$((port + 61))/" error)" "no certificate of the client"
    archivist watch run --wait w55client >/dev/null || true
    assert_eq "crawl true status true" \
        "$(query 'map("\(.kind) \(.ok)") | unique | join(" ")' watch history w55client)" "with a certificate of the client"
    assert_eq "600 root" "$(in_capsule stat -c "%a %U" /etc/archivist/w55client.watch)" "file with secrets"
    state=$(archivist watch show w55client)
    assert_contains "$state" "header: Authorization: (hidden)" "watch show"
    assert_contains "$state" "note: crawl checks do not use Keyword=" "watch show"
    state+=$(archivist watch list --json)$(archivist watch history w55client --json)
    assert_eq 0 "$(grep -c secret55 <<<"$state")" "secrets that all members see"
    assert_eq 0 "$(archivist doctor | grep -c "0600 /etc/archivist/w55client")" "doctor and a closed file"
    in_capsule chmod 0644 /etc/archivist/w55client.watch
    assert_contains "$(archivist doctor || true)" "chmod 0600 /etc/archivist/w55client.watch" "doctor and an open file"
    archivist watch remove w55
    archivist watch remove w55client
    in_capsule sh -c 'rm /etc/archivist/check-tls.pem /usr/local/share/ca-certificates/check-tls.crt; update-ca-certificates >/dev/null 2>&1'
}
