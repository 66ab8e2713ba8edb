#!/bin/bash
# F1: SIGKILL to the orchestrator at random times: no result is lost or recorded twice, and no run without a unit is
# recorded as running.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 30 250) HOOKS=8 KILLS=$(times 20 200)

clean() { forget_configuration; }

prepare() {
    put_tool
    many_hooks testkill $HOOKS <<'SH'
#!/bin/bash
hook=$(basename "$0" .sh)
exec 9>>lock-$hook
flock -n 9 || { echo "$hook overlap" >>story; exit 1; }
sleep 0.$((RANDOM % 9 + 1))
echo "$hook end" >>story
SH
    configure <<'END'
[Orchestrator]
RetrySec=1s
RetryMaxSec=1s
AttemptsMax=1000
END
}

kills_lose_nothing() {
    local crawl kills ghosts verdict
    crawl=$(pages "$PAGES" kill testkill)
    kills=$(tool kill "$KILLS" "$crawl")
    sleep 5 # what is allowed
    ghosts=$(tool ghosts)
    finish "$crawl" 600
    verdict=$(tool judge "$crawl" $((PAGES * HOOKS)))
    figure "F1 kills=$kills hooks=$((PAGES * HOOKS)) running-without-unit=$ghosts $verdict"
    assert_eq sealed "$(crawl_status "$crawl")" "status of the crawl"
    assert_eq "0 lost=0 twice=0 again=0 beside=0 open=0" "$ghosts $verdict" "what the kills did"
    ((kills >= KILLS / 2)) || fail "the crawl was over after $kills kills"
    assert_nothing_is_left
}

cases kills_lose_nothing
