# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    in_capsule install -m 644 "$web/client.pem" /etc/archivist-client.pem
    crawl_club=$(add --plugins wget,headers --set CHECK_SSL_VALIDITY=no --set CLIENT_CERTIFICATE=/etc/archivist-client.pem "https://localhost:$port/")
    crawl_without_certificate=$(add --plugins wget --set CHECK_SSL_VALIDITY=no "https://localhost:$port/" "http://localhost:$port/http2")
}

judge() {
    wait_for 60 is_over "$crawl_club"
    wait_for 60 is_over "$crawl_without_certificate"
    assert_eq succeeded "$(result "$crawl_club" ":$port/" headers status)" "headers"
    in_capsule grep -q "shown to visitor" "$(saved "$crawl_club" ":$port/")/wget/$(result "$crawl_club" ":$port/" wget output)" ||
        fail "wget did not send the certificate"
    assert_contains "$(result "$crawl_without_certificate" ":$port/" wget error)" "demands a client certificate" "wget without a certificate"
    assert_contains "$(result "$crawl_without_certificate" /http2 wget error)" "the server speaks only HTTP/2" "wget of a server that speaks only HTTP/2"
    in_capsule rm /etc/archivist-client.pem
}
