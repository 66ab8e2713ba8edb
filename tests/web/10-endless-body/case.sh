# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# Answers without an end.

queue() {
    archivist watch add w10 "http://127.0.0.1:$port"/{radio,events,silent,page} \
        --status daily --lighthouse no --crawl no >/dev/null
}

judge() {
    archivist watch run --kind status --wait w10 >/dev/null
    assert_eq "200 200 200 200" "$(query 'map(.status_code)' watch history w10 -n 4)" "checks of streams"
    archivist watch remove w10
}
