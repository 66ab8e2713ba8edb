#!/bin/bash
# F22: crawls are cancelled at random times, between restarts of the orchestrator: no process and no failed unit
# of them remains.
source "$(dirname "$0")/lib.sh"

ROUNDS=$(times 15 500) SEED=${SEED-$RANDOM}

clean() { forget_configuration; }

# cancel CRAWL: cancels CRAWL unless it has ended, also if the orchestrator exits during the call.
cancel() {
    until archivist cancel "$1" >/dev/null 2>&1; do
        ! is_over "$1" || return 0
    done
}

round() {
    local crawls=() crawl
    ((RANDOM % 3 == 0)) || crawls+=("$(pages 40 cancels testshort)")
    ((RANDOM % 3 == 0)) || crawls+=("$(pages 2 waits testwaits)")
    sleep "$((RANDOM % 2)).$((RANDOM % 1000))" # the instant
    if ((RANDOM % 3 == 0)); then
        in_capsule systemctl reset-failed $service 2>/dev/null || true
        in_capsule systemctl --no-block restart $service
        restarts=$((restarts + 1))
        sleep "0.$((RANDOM % 400))"
    fi
    for crawl in "${crawls[@]}"; do
        cancel "$crawl"
        cancelled=$((cancelled + 1))
    done
    assert_nothing_is_left
}

prepare() {
    many_hooks testshort 1 <<'SH'
#!/bin/sh
echo done >done.txt
SH
    many_hooks testwaits 10 finite.bg.sh <<'SH'
#!/bin/sh
echo ready
exec sleep 7777
SH
    configure </dev/null
}

cancels_leave_nothing() {
    local restarts=0 cancelled=0 n
    RANDOM=$SEED
    for ((n = 0; n < ROUNDS; n++)); do round; done
    figure "F22 crawls cancelled=$cancelled, restarts amid them=$restarts, seed $SEED: left behind 0"
}

cases cancels_leave_nothing
