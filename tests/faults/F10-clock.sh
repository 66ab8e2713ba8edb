#!/bin/bash
# F10: the clock of a machine is set back and forth by a day while hooks run: time limits end hooks after their time, retries run
# after their back-off, and queued work starts in order. The times of this test come from the host of the machine.
source "$(dirname "$0")/machine.sh"

LIMIT=15 RETRY=120 SLACK=40

clean() {
    in_capsule date -u -s "@$EPOCHSECONDS" >/dev/null
    forget_configuration
}

prepare() {
    need_machine
    put_tool
    plugin testlong <<'SH'
#!/bin/sh
sleep 600
SH
    plugin testquick <<'SH'
#!/bin/sh
echo done >done.txt
SH
    configure <<END
[Orchestrator]
RetrySec=${RETRY}s
RetryMaxSec=${RETRY}s
[Hooks]
TimeoutSec=${LIMIT}s
END
}

# set_clock DAYS
set_clock() { in_capsule date -u -s "@$((EPOCHSECONDS + $1 * 86400))" >/dev/null; }

# end_of BEGAN COMMAND…: waits until COMMAND succeeds, and sets $ended to the seconds since BEGAN, by the clock of the host.
end_of() {
    local began=$1
    shift
    wait_for $((RETRY + SLACK + LIMIT)) "$@"
    ended=$((EPOCHSECONDS - began))
}

# within LEAST MOST SECONDS WHAT
within() { (($3 >= $1 && $3 <= $2)) || fail "$4: $3 s, expected $1 to $2"; }

is_put_off() { [[ $(query '.[0] | [.status, field("retry_at") != null, .attempts]' list crawls "$1") == "queued true 1" ]]; }

is_tried_again() { [[ $(attempts "$1") == 2 ]]; }

attempts() { query '.[0].attempts' list crawls "$1"; }

# Before the change, a hook with a limit runs, and a crawl with a killed worker is in back-off; afterwards a page is added.
the_clock_is_set_by() {
    local days=$1 limited retried added began killed ended outcome
    retried=$(pages 1 retried testquick)
    wait_for 120 in_capsule systemctl kill --signal=KILL --kill-whom=main "archivist-crawl-${retried#c}.service" 2>/dev/null
    wait_for 90 is_put_off "$retried"
    killed=$EPOCHSECONDS
    limited=$(pages 1 limited testlong)
    wait_for 120 has_unit 'archivist-hook-testlong-*'
    began=$EPOCHSECONDS
    set_clock "$days"
    in_capsule archivist status >/dev/null
    # With jitter, the delay is at least half of the back-off.
    [[ $(attempts "$retried") == 1 ]] || within $((RETRY / 2 - 5)) $((RETRY + SLACK)) $((EPOCHSECONDS - killed)) "back-off"
    added=$(pages 1 added testquick)
    finish "$added" 180
    end_of "$began" is_over "$limited"
    within $((LIMIT - 5)) $((LIMIT + SLACK)) "$ended" "hook with a time limit, the clock set by $days days"
    outcome=$(query 'map(select(.kind == "hook").outcome.kind) | unique' list runs "$limited")
    assert_eq time-limit "$outcome" "outcome of the hook"
    figure "F10 clock set by $days days: a hook limited to $LIMIT s ended after $ended s"
    end_of "$killed" is_tried_again "$retried"
    within $((RETRY / 2 - 5)) $((RETRY + SLACK)) "$ended" "back-off, the clock set by $days days"
    finish "$retried" 180
    assert_eq "sealed sealed" "$(crawl_status "$retried") $(crawl_status "$added")" "crawls"
    figure "F10 clock set by $days days: a retry after $((RETRY / 2)) to $RETRY s was seen after $ended s"
    set_clock 0
    assert_nothing_is_left
}

the_clock_is_set_back() { the_clock_is_set_by -1; }
the_clock_is_set_forward() { the_clock_is_set_by 1; }

cases the_clock_is_set_back the_clock_is_set_forward
