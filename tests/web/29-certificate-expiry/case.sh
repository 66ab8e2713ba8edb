# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# Certificates that the machine trusts: one with CA:TRUE, one that expires in two days, one that has expired.

queue() {
    in_capsule sh -c "cp /tmp/certificates/*.crt /usr/local/share/ca-certificates/ && update-ca-certificates >/dev/null 2>&1"
    archivist watch add w29 "https://localhost:$port/" "https://localhost:$((port + 50))/" "https://localhost:$((port + 51))/" \
        "https://localhost:$((port + 52))/" --status daily --lighthouse no --crawl no >/dev/null
}

# certificate OFFSET FIELD: prints a field of the check of the server at this port.
certificate() { query "map(select(.url == \"https://localhost:$((port + $1))/\"))[0].$2" watch history w29; }

judge() {
    archivist watch run --kind status --wait w29 >/dev/null || true
    assert_eq "200 200 200 526" "$(certificate 0 status_code) $(certificate 50 status_code) $(certificate 51 status_code) $(certificate 52 status_code)" "certificates"
    assert_eq "the certificate expires in 2 days" "$(certificate 51 warning)" "warning"
    assert_eq 2 "$(certificate 51 certificate_days)" "days until the certificate expires"
    assert_contains "$(certificate 52 error)" "has expired" "error of an expired certificate"
    assert_contains "$(archivist watch show w29)" "certificate expires in 2 days" "watch show"
    archivist watch remove w29
    in_capsule sh -c 'cd /tmp/certificates && for file in *.crt; do rm -f "/usr/local/share/ca-certificates/$file"; done; update-ca-certificates >/dev/null 2>&1'
}
