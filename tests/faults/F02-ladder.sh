#!/bin/bash
# F2: hooks that try to survive: another session and a double fork, SIGTERM ignored, a stopped child, endless forks, a child
# that keeps stdout open. After cancel, all their processes end within the grace period and a second, a process of another user
# survives, and no result is a success.
source "$(dirname "$0")/lib.sh"

GRACE=3
canary=test-canary.service

clean() {
    in_capsule systemctl stop $canary 2>/dev/null || true
    in_capsule systemctl revert 'archivist-hook-.service' 2>/dev/null || true
    in_capsule rm -rf /run/systemd/system/archivist-hook-.service.d
    in_capsule systemctl daemon-reload
    forget_configuration
}

prepare() {
    put_tool
    plugin testsetsid <<'SH'
#!/bin/bash
setsid bash -c '(trap "" TERM HUP INT; exec -a outlives sleep infinity) & disown' &
touch ready
sleep infinity
SH
    plugin testdeaf <<'SH'
#!/bin/bash
trap '' TERM INT HUP QUIT
touch ready
while :; do sleep 1; done
SH
    plugin teststopped <<'SH'
#!/bin/bash
sleep infinity & kill -STOP $!
touch ready
wait
SH
    # Forks up to TasksMax=.
    plugin testforks <<'SH'
#!/bin/bash
trap '' TERM
touch ready
while :; do (trap '' TERM; sleep 5) & sleep 0.02; done
SH
    plugin testholds <<'SH'
#!/bin/bash
(trap '' TERM; exec sleep infinity) &
touch ready
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"it says"}'
wait
SH
    in_capsule mkdir -p /run/systemd/system/archivist-hook-.service.d
    in_capsule sh -c "printf '[Service]\nTimeoutStopSec=$GRACE\n' >/run/systemd/system/archivist-hook-.service.d/90-test.conf"
    in_capsule systemctl daemon-reload
    configure </dev/null
    in_capsule systemd-run --quiet --unit=$canary --property=Type=exec sleep infinity
}

is_ready() { in_capsule test -e "$(query '.[0].directory' list snapshots "$1")/$2/ready"; }

# outlives_nothing STEP: cancels the crawl of this hook and checks that no process is left.
outlives_nothing() {
    local crawl snapshot milliseconds
    crawl=$(add --plugins "test$1" "http://ladder.test/$1")
    wait_for 30 is_ready "$crawl" "test$1"
    snapshot=$(query '.[0].id' list snapshots "$crawl")
    milliseconds=$(tool cancel "$crawl" "archivist-hook-test$1-$snapshot.service")
    ((milliseconds <= (GRACE + $(times 15 1)) * 1000)) || fail "$1: it took $milliseconds ms"
    assert_nothing "$1: successes" query 'map(select(.status == "succeeded").status)' list results "$crawl"
    assert_eq cancelled "$(crawl_status "$crawl")" "$1: the crawl"
    has_unit $canary || fail "$1: the canary is dead"
    assert_nothing_is_left
    figure "F2 $1: grace=${GRACE}s, gone after $milliseconds ms, canary lives"
}

another_session() { outlives_nothing setsid; }
deaf_to_signals() { outlives_nothing deaf; }
a_stopped_child() { outlives_nothing stopped; }
forks_without_end() { outlives_nothing forks; }
a_child_that_holds_stdout() { outlives_nothing holds; }

cases another_session deaf_to_signals a_stopped_child forks_without_end a_child_that_holds_stdout
