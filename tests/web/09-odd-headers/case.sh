# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# Headers that browsers accept.

queue() {
    local path urls=()
    for path in good space-in-name space-before-colon control high lf-only nocolon folded big bigger many noreason two-lengths; do
        urls+=("http://127.0.0.1:$port/$path")
    done
    archivist watch add w9 "${urls[@]}" --status daily --lighthouse no --crawl no >/dev/null
}

judge() {
    archivist watch run --kind status --wait w9 >/dev/null
    assert_eq "" "$(query 'map(select(.status_code != 200).url)' watch history w9)" "sites with odd headers that are down"
    assert_eq 13 "$(query 'map(.url) | unique | length' watch history w9)" "checks"
    archivist watch remove w9
}
