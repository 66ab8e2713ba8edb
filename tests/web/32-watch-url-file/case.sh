# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    in_capsule sh -c "mkdir -p /srv/lists; sed s/PORT/$port/ $web/sites.txt >/srv/lists/sites.txt"
    assert_status 3 archivist watch add w32 --url-file /srv/lists/sites.txt --status daily --lighthouse no --crawl no
    crawl_watch_said=$output
}

judge() {
    local line said
    assert_status 0 archivist watch run --kind status --wait w32
    assert_eq "http://127.0.0.1:$port/blog http://127.0.0.1:$port/shop" \
        "$(query 'map(select(.ok).url) | unique' watch history w32)" "sites that are checked"
    said=$(in_capsule journalctl --quiet --no-pager --output=cat --unit=archivist-orchestrator.service)
    for line in 3 4; do
        assert_contains "$crawl_watch_said" "/srv/lists/sites.txt:$line: " "watch add"
        assert_contains "$(archivist watch show w32)" "/srv/lists/sites.txt:$line: " "watch show"
        assert_contains "$(archivist why w32)" "/srv/lists/sites.txt:$line: " "why"
        assert_contains "$(archivist doctor || true)" "/srv/lists/sites.txt:$line: " "doctor"
        grep -q "/srv/lists/sites.txt:$line: " <<<"$said" || fail "line $line is not in the journal"
    done
    archivist watch remove w32
    in_capsule rm -r /srv/lists
}
