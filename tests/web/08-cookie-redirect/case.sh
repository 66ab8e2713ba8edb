# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# Sites that set a cookie and redirect.

queue() {
    archivist watch add w8 "http://127.0.0.1:$port/" "http://127.0.0.1:$port/way" \
        --status daily --lighthouse no --crawl weekly >/dev/null
    crawl_cookies=$(add --plugins headers,favicon "http://127.0.0.1:$port/")
}

judge() {
    archivist watch run --kind status --kind crawl --wait w8 >/dev/null
    assert_eq "true true true true" "$(query 'map(.ok)' watch history w8 -n 4)" "checks of a site with cookies"
    wait_for 60 is_over "$crawl_cookies"
    assert_eq succeeded "$(query 'map(select(.plugin == "headers").status) | unique' list results "$crawl_cookies")" "headers of a site with cookies"
    archivist watch remove w8
}
