#!/bin/bash
# The limits of a crawl: the pages that they leave out, the reasons in output, and the crawl after a limit is raised.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

clean() { forget_configuration; }

prepare() {
    plugin testbytes <<'SH'
#!/bin/sh
head -c 2048 /dev/zero >zeros.bin
SH
    plugin testmore on_Snapshot__30_testmore.sh <<'SH'
#!/bin/sh
echo more >more.txt
SH
    plugin testslow <<'SH'
#!/bin/sh
case $1 in */1) sleep 6 ;; esac
echo done >done.txt
SH
    configure <<<$'[Orchestrator]\nSnapshotsPerCrawl=1'
}

# crawl_of ARGUMENT…: archives five pages with these arguments, prints the crawl's id.
crawl_of() {
    local crawl
    crawl=$(printf 'http://limit.test/%s\n' 1 2 3 4 5 | archivist add --json --plugins testbytes,testmore "$@" - | evaluate '.crawl')
    wait_for 60 is_over "$crawl"
    echo "$crawl"
}

pages() { query '.[0].snapshots | to_entries | map("\(.key)=\(.value)") | sort' list crawls "$1"; }

limits_pages_and_goes_on() {
    local crawl
    crawl=$(crawl_of --set CRAWL_MAX_URLS=2)
    assert_eq "cancelled=3 sealed=2" "$(pages "$crawl")" "pages of a crawl with CRAWL_MAX_URLS=2"
    assert_contains "$(archivist show "$crawl")" "CRAWL_MAX_URLS=2 reached, 3 pages left out" "the reason"
    assert_contains "$(archivist why "$crawl")" "archivist retry $crawl --set CRAWL_MAX_URLS=0" "the command that archives them"
    archivist retry "$crawl" --set CRAWL_MAX_URLS=4
    wait_for 60 is_over "$crawl"
    assert_eq "cancelled=1 sealed=4" "$(pages "$crawl")" "pages after the limit was raised"
    archivist retry "$crawl" --set CRAWL_MAX_URLS=0
    wait_for 60 is_over "$crawl"
    assert_eq "sealed=5" "$(pages "$crawl")" "pages without a limit"
}

# noted CRAWL PLUGIN: prints the result of the plugin in index.jsonl of the newest page.
noted() {
    in_capsule cat "$(query '.[0].directory' list snapshots "$1")/index.jsonl" |
        gojq --raw-output --arg plugin "$2" 'select(.type == "ArchiveResult" and .plugin == $plugin) | "\(.status) \(.error)"'
}

limits_bytes() {
    local crawl
    crawl=$(crawl_of --set CRAWL_MAX_SIZE=1k)
    assert_contains "$(archivist show "$crawl")" "CRAWL_MAX_SIZE=1024 reached" "the reason"
    crawl=$(crawl_of --set SNAPSHOT_MAX_SIZE=1k)
    assert_eq "sealed=5" "$(pages "$crawl")" "pages of a crawl with SNAPSHOT_MAX_SIZE=1k"
    assert_eq "skipped SNAPSHOT_MAX_SIZE=1024 reached" "$(noted "$crawl" testmore)" "the second hook in index.jsonl"
    assert_eq "skipped SNAPSHOT_MAX_SIZE=1024 reached" \
        "$(query 'of("testmore") | map(.status + " " + .error) | unique' list results "$crawl")" "the second hook"
}

# One page at a time; the first takes longer than the limit of the crawl: it is finished, the others are left out.
limits_time_and_goes_on() {
    local crawl
    crawl=$(printf 'http://limit.test/%s\n' 1 2 3 | archivist add --json --plugins testslow --set CRAWL_TIMEOUT=5 - | evaluate '.crawl')
    wait_for 60 is_over "$crawl"
    assert_eq "cancelled=2 sealed=1" "$(pages "$crawl")" "pages of a crawl with CRAWL_TIMEOUT=5"
    assert_contains "$(archivist show "$crawl")" "CRAWL_TIMEOUT=5 reached, 2 pages left out" "the reason"
    assert_eq succeeded "$(query 'map(.status) | unique' list results "$crawl")" "the page that took too long"
    archivist retry "$crawl" --set CRAWL_TIMEOUT=0
    wait_for 60 is_over "$crawl"
    assert_eq "sealed=3" "$(pages "$crawl")" "pages without a limit of time"
}

# TimeoutSec= applies to hooks without a limit of their own, and a crawl may override it.
limits_hooks() {
    configure <<<$'[Hooks]\nTimeoutSec=2min'
    assert_eq "2min" "$(limit_of_hook)" "limit of a hook with TimeoutSec=2min"
    assert_eq "1min 30s" "$(limit_of_hook --set TIMEOUT=90)" "limit of a hook in a crawl with TIMEOUT=90"
}

limit_of_hook() {
    archivist run --dry-run --plugins testbytes "$@" http://limit.test/ | sed -nE 's/^each page +testbytes.* foreground +//p' | sed 's/ *$//; s/ 0s$//'
}

# Crawls wait for their pages: with the minimum of slots for both, all of them finish.
works_with_few_places() {
    local most crawls crawl
    for most in 1 3; do
        configure <<<"[Orchestrator]
WorkersMax=$most"
        crawls=()
        for _ in 1 2 3 4; do
            crawls+=("$(archivist add --json --plugins testmore http://limit.test/few | evaluate '.crawl')")
        done
        for crawl in "${crawls[@]}"; do
            wait_for 60 is_over "$crawl"
            assert_eq sealed=1 "$(pages "$crawl")" "pages with WorkersMax=$most"
        done
    done
}

# Pages that the lists exclude are not archived, given or found; all others are.
heeds_lists_of_urls() {
    local crawl
    assert_status 2 archivist add --plugins testmore --set URL_DENYLIST=intern.test http://intern.test/
    assert_contains "$output" "left out by UrlAllowList= or UrlDenyList=" "words about the only URL"
    assert_status 3 archivist add --wait --plugins testmore --set URL_DENYLIST=intern.test http://limit.test/listed http://a.intern.test/
    assert_contains "$output" "http://a.intern.test/" "the URL that is left out"
    crawl=$(query '.[0].id' list crawls --limit 1)
    assert_eq http://limit.test/listed "$(query 'map(.url)' list snapshots "$crawl")" "the pages"
    assert_status 2 in_capsule sh -c "echo '{\"url\":\"http://limit.test/deep\",\"depth\":1}' | archivist add -"
    assert_contains "$output" "depth 1 exceeds the depth of the crawl, 0" "words about a page that is too deep"
}

# With --same-host, links to other hosts are not followed; without it, they are.
stays_on_the_host() {
    local crawl
    plugin testlinks <<'SH'
#!/bin/sh
for url in http://www.limit.test:8080/own http://other.test/; do
    echo "{\"type\": \"Snapshot\", \"url\": \"$url\"}"
done
SH
    assert_status 0 archivist add --wait --plugins testlinks --depth 1 --same-host http://limit.test/
    crawl=$(query '.[0].id' list crawls --limit 1)
    assert_eq "http://limit.test/ http://www.limit.test:8080/own" "$(query 'map(.url) | sort' list snapshots "$crawl")" "the pages of one host"
    assert_status 0 archivist add --wait --plugins testlinks --depth 1 http://limit.test/
    crawl=$(query '.[0].id' list crawls --limit 1)
    assert_contains "$(query 'map(.url)' list snapshots "$crawl")" "http://other.test/" "the pages of all hosts"
    assert_status 2 archivist add --set CRAWL_SAME_HOST=perhaps http://limit.test/
    assert_contains "$output" "bad value 'perhaps' of CRAWL_SAME_HOST" "error for a word"
}

refuses_nonsense() {
    assert_status 2 archivist add --set CRAWL_MAX_SIZE=much http://limit.test/
    assert_contains "$output" "bad value 'much' of CRAWL_MAX_SIZE" "error for a size"
    assert_nothing_is_left
}

cases limits_pages_and_goes_on limits_bytes limits_time_and_goes_on limits_hooks works_with_few_places \
    heeds_lists_of_urls stays_on_the_host refuses_nonsense
