# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# A site of traps: the crawl ends and names its limit.

queue() {
    archivist watch add w26 "http://127.0.0.1:$port/" --status no --lighthouse no --crawl weekly >/dev/null
}

judge() {
    archivist watch run --kind crawl --wait w26 >/dev/null
    assert_eq true "$(query '.[0].ok' watch history w26)" "crawl of a site of traps"
    assert_contains "$(query '.[0].findings | map(.kind)' watch history w26)" limit-reached "findings"
    archivist watch remove w26
}
