# Certificates that the machine trusts: one with CA:TRUE, one that expires in two days, one that has expired.

queue() {
    in_capsule sh -c "cp /tmp/certificates/*.crt /usr/local/share/ca-certificates/ && update-ca-certificates >/dev/null 2>&1"
    archivist watch add w29 "https://localhost:$port/" "https://localhost:$((port + 1))/" "https://localhost:$((port + 2))/" \
        "https://localhost:$((port + 3))/" --status daily --lighthouse no --crawl no >/dev/null
}

# of NUMBER FIELD: prints a field of the check of the server at this port.
of() { query "map(select(.url == \"https://localhost:$((port + $1))/\"))[0].$2" watch history w29; }

judge() {
    archivist watch run --kind status --wait w29 >/dev/null || true
    assert_eq "200 200 200 526" "$(of 0 status_code) $(of 1 status_code) $(of 2 status_code) $(of 3 status_code)" "certificates"
    assert_eq "the certificate expires in 2 days" "$(of 2 warning)" "warning"
    assert_eq 2 "$(of 2 certificate_days)" "days until the certificate expires"
    assert_contains "$(of 3 error)" "has expired" "error of an expired certificate"
    assert_contains "$(archivist watch show w29)" "certificate expires in 2 days" "watch show"
    in_capsule sh -c 'cd /tmp/certificates && for file in *.crt; do rm -f "/usr/local/share/ca-certificates/$file"; done; update-ca-certificates >/dev/null 2>&1'
}
