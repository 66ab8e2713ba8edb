#!/bin/bash
# Watches: a site that goes down, is slow, has a bad certificate and comes back, with history and alerts; nothing is queued twice;
# timers queue without an orchestrator; missed runs become one run, or none; slow checks do not delay fast ones; old results are
# removed. With EXTENT=full, 200 watches concurrently with slow checks.
# In a short run early, because it takes minutes.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

own=/srv/watches
stand_in=/run/systemd/system/archivist-check-lighthouse-.service.d/90-test.conf
database=/var/lib/archivist/archivist.sqlite3
port=$((18477 + release_number))

clean() {
    in_capsule sh -c 'systemctl stop "archivist-watch-*.timer"; rm -f /etc/archivist/*.watch' || true
    in_capsule systemctl stop test-watched.service test-tls.service 2>/dev/null || true
    in_capsule sh -c "rm -rf $own ${stand_in%/*}; systemctl daemon-reload"
    in_capsule sh -c 'systemctl stop "archivist-check-*.service" "archivist-alert-*.service"; systemctl reset-failed "archivist-check-*"' 2>/dev/null || true
    forget_configuration
}

prepare() {
    in_capsule sh -c "rm -rf $own; mkdir -p $own"
    local file
    for file in site.py lateness.py; do capsule cp "$ROOT/tests/capsule/watches/$file" "$CAPSULE:$own/$file"; done
    in_capsule sh -c "cat >$own/tell && chmod 755 $own/tell && chmod 1777 $own" <<'SH'
#!/bin/sh
echo "$1 $ARCHIVIST_STATE $ARCHIVIST_STATUS_CODE $ARCHIVIST_URL" >>/srv/watches/told
SH
    in_capsule sh -c "printf '[Service]\nType=oneshot\nExecStart=/bin/sh -c \"echo recovered %%i >>$own/told\"\n' >/run/systemd/system/told@.service
        touch $own/told && chmod 666 $own/told; systemctl daemon-reload"
    mood good
    start_watched
    forget_results
    restart
}

mood() { in_capsule sh -c "echo $1 >$own/mood"; }

start_watched() {
    in_capsule systemd-run --quiet --collect --unit=test-watched --property=Type=exec python3 $own/site.py $port $own/mood
    wait_for 20 listens $port
}

listens() { in_capsule python3 -c "import socket; socket.create_connection(('127.0.0.1', $1), 1)" 2>/dev/null; }

# asks NAME [KIND]: one check, to its end; prints its status code.
asks() { archivist watch run "$1" --kind "${2-status}" --wait --json | evaluate '.[0].status_code' || true; }

# told WORD: prints the alerts so far.
told() { in_capsule sh -c "cat $own/told 2>/dev/null || true" | paste -sd " "; }

has_told() { [[ $(told) == "$1" ]]; }

count_of() { query 'map(select(.state == "ended")) | length' watch history "$1" --kind "${2-status}" -n 0; }

has_done() { [[ $(count_of "$1") -ge $2 ]]; }

# Deletes the results of an earlier run of this test.
forget_results() {
    in_capsule systemctl stop $service
    in_capsule python3 -c "import sqlite3
d = sqlite3.connect('$database')
d.executescript('delete from check_result; delete from watch')"
}

a_site_in_all_its_moods() {
    local code
    archivist watch add site "http://127.0.0.1:$port/" --status "every 1h" --lighthouse no --crawl no \
        --on-down "$own/tell 'it is'" --on-recovery told@.service >/dev/null
    # A new watch has a first check.
    wait_for 20 has_done site 1
    assert_eq 200 "$(query '.[0].status_code' watch history site)" "code of a good site"
    mood bad
    assert_eq 500 "$(asks site)" "code of a bad one"
    assert_eq "" "$(told)" "alerts after one failure"
    mood slow
    assert_eq 408 "$(asks site)" "code of one that does not answer in time"
    wait_for 20 has_told "it is down 408 http://127.0.0.1:$port/"
    assert_contains "$(archivist watch list)" "down" "list"
    in_capsule systemctl stop test-watched.service
    assert_eq 408 "$(asks site)" "code of one that is not there"
    mood good
    start_watched
    assert_eq 200 "$(asks site)" "code of one that came back"
    wait_for 20 has_told "it is down 408 http://127.0.0.1:$port/ recovered site"
    code=$(query 'reverse | map(.status_code)' watch history site --kind status)
    assert_eq "200 500 408 408 200" "$code" "history"
    assert_eq "true null" "$(query '.[0].sites | only | [.uptime == 40, field("down_since")]' watch show site)" "uptime"
    archivist watch history site --plot - | in_capsule python3 -c 'import sys, xml.dom.minidom as m
assert m.parse(sys.stdin).getElementsByTagName("polyline") is not None'
    assert_contains "$(journal -x -u $service)" "is down since" "journal"
}

# The script in archivist.watch(5), with a server of this test.
calls_a_webhook() {
    sed -n '/^#!.usr.bin.python3/,/^\.fi/{/^\.fi/d;s/\\-/-/g;p}' "$ROOT/man/archivist.watch.5" |
        in_capsule sh -c "cat >$own/webhook && chmod 755 $own/webhook"
    mood bad
    archivist watch add hook "http://127.0.0.1:$port/hook" --status "every 1h" --lighthouse no --crawl no --set DownAfter=1 \
        --on-down "$own/webhook http://127.0.0.1:$port/chat" >/dev/null
    assert_eq 500 "$(asks hook)" "code of a bad site"
    wait_for 20 has_posted "http://127.0.0.1:$port/hook is down (500 "
    archivist watch remove hook
    mood good
}

has_posted() { [[ $(in_capsule sh -c "cat $own/mood.posted 2>/dev/null" || true) == *"$1"* ]]; }

a_bad_certificate() {
    in_capsule sh -c "openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -keyout $own/key -out $own/crt &&
        cat $own/key $own/crt >$own/tls.pem" 2>/dev/null || skip "the capsule has no openssl"
    in_capsule systemd-run --quiet --collect --unit=test-tls --property=Type=exec python3 $own/site.py $((port + 1)) $own/mood $own/tls.pem
    wait_for 20 listens $((port + 1))
    archivist watch add tls "https://127.0.0.1:$((port + 1))/" --status "every 1h" --lighthouse no --crawl no >/dev/null
    assert_eq 526 "$(asks tls)" "code of a bad certificate"
    archivist watch remove tls
    in_capsule systemctl stop test-tls.service
}

the_same_twice_is_one() {
    needs a_site_in_all_its_moods
    mood slow
    assert_eq "1 0" "$(query '[(.queued | length), .open]' watch run site --kind status)" "first"
    assert_eq "0 1 $(query '.[0].id' watch history site)" "$(query '[(.queued | length), .open, (.open_ids | only)]' watch run site --kind status)" "second"
    in_capsule systemctl start archivist-watch@status-site.service
    # The orchestrator dies during the check, and its successor records the end.
    in_capsule systemctl kill --signal=KILL $service
    wait_for 60 has_done site 6
    mood good
    assert_eq 6 "$(count_of site)" "checks"
    [[ $(query '.[0].status_code' watch history site) -eq 408 ]] || fail "the check was lost with the orchestrator"
}

timers_and_list_agree() {
    needs a_site_in_all_its_moods
    local ours theirs
    ours=$(query '.[0].next.status[:19]' watch show site)
    theirs=$(in_capsule env TZ=UTC systemctl show --property=NextElapseUSecRealtime --value --timestamp=utc archivist-watch-site-status.timer)
    theirs=$(in_capsule date --utc --date="$theirs" +%Y-%m-%dT%H:%M:%S)
    assert_eq "$theirs" "$ours" "next run"
    assert_contains "$theirs" ":00:00" "every hour stands on the clock"
    assert_contains "$(in_capsule systemctl list-timers --all 'archivist-watch-*')" "archivist-watch-site-status.timer" "list-timers"
}

timers_queue_without_an_orchestrator() {
    local before
    archivist watch add often "http://127.0.0.1:$port/" --status "every 2s" --lighthouse no --crawl no >/dev/null
    wait_for 20 has_done often 2
    before=$(count_of often)
    in_capsule systemctl stop $service
    wait_for 30 has_unit $service
    wait_for 20 has_done often $((before + 2))
}

# As after days without the machine: the recorded time of the timer's last run is set back by five runs.
missed_runs_collapse() {
    local name at timer
    # Half a day from now: the timer does not elapse by itself meanwhile.
    at=$(in_capsule date -d '12 hours' '+*-*-* %H:%M:00')
    for name in one skip; do
        archivist watch add "missed-$name" "http://127.0.0.1:$port/" --status "$at" --lighthouse no --crawl no \
            --set Spread=0 --set "Missed=$name" >/dev/null
        timer=archivist-watch-missed-$name-status.timer
        in_capsule systemctl stop "$timer"
        # That of a new watch.
        wait_for 20 has_done "missed-$name" 1
        assert_eq 1 "$(checks_of "missed-$name")" "checks of missed-$name before"
        in_capsule touch -d '5 days ago' "/var/lib/systemd/timers/stamp-$timer"
        in_capsule systemctl start "$timer"
    done
    wait_for 20 has_done missed-one 2
    wait_for 20 is_at_rest archivist-watch-missed-one-status.timer
    assert_eq 2 "$(checks_of missed-one)" "checks with one for five missed runs"
    assert_eq 1 "$(checks_of missed-skip)" "checks without those to be skipped"
    is_at_rest archivist-watch-missed-skip-status.timer || fail "the timer that skips is not waiting for its next run"
    archivist watch remove missed-one >/dev/null
    archivist watch remove missed-skip >/dev/null
}

checks_of() { query 'length' watch history "$1" -n 0; }

# is_at_rest TIMER: it waits, its service is done, and its next run is hours away.
is_at_rest() {
    [[ $(unit_property "$1" SubState) == waiting ]] || return 1
    in_capsule sh -c "test \$(date -d \"\$(systemctl show --value -p NextElapseUSecRealtime $1)\" +%s) -gt \$((\$(date +%s) + 36000))"
}

has_none_of() { [[ -z $(in_capsule systemctl list-units --plain --no-legend "$1") ]]; }

slow_checks_hold_up_no_fast_ones() {
    needs timers_queue_without_an_orchestrator
    local n checks p95 most
    in_capsule sh -c "mkdir -p ${stand_in%/*} && printf '[Service]\nExecStart=\nExecStart=/bin/sleep 600\n' >$stand_in && systemctl daemon-reload"
    for n in 1 2 3 4 5; do
        archivist watch add "slow$n" "http://127.0.0.1:$port/$n" --status no --lighthouse "every 1d" --crawl no >/dev/null
        archivist watch run "slow$n" --kind lighthouse >/dev/null
    done
    assert_eq 2 "$(in_capsule systemctl list-units --plain --no-legend 'archivist-check-lighthouse-*.service' | wc -l)" "slow checks at a time"
    n=$(count_of often)
    wait_for 60 has_done often $((n + 10))
    read -r checks p95 most < <( (archivist watch list --json; archivist watch history often --kind status -n 10 --json) |
        in_capsule python3 $own/lateness.py 2 0)
    figure "status checks beside a slow pool that is full: $checks, 95 % within $p95 ms, all within $most ms"
    # Slow checks take ten minutes.
    [[ $p95 -lt $(times 10000 1000) ]] || fail "status checks are late: $p95 ms"
    assert_contains "$(unit_property archivist-check-slow.slice ActiveState)" "active" "slice"
    for n in 1 2 3 4 5; do archivist watch cancel "slow$n"; done
    wait_for 20 has_none_of 'archivist-check-lighthouse-*.service'
    assert_eq "ended interrupted by user" "$(query '.[0] | .state + " " + .error' watch history slow5)" "a check that waited"
    for n in 1 2 3 4 5; do archivist watch remove "slow$n"; done
    archivist watch remove often
    wait_for 20 nothing_is_left
}

results_go_in_time() {
    needs a_site_in_all_its_moods
    in_capsule systemctl stop $service
    in_capsule python3 -c "import sqlite3
d = sqlite3.connect('$database')
d.execute('update check_result set keep_until = keep_until - 10 * 86400000 where watch = ?', ('site',))
d.commit()"
    in_capsule systemctl start $service
    assert_eq 1 "$(query 'length' watch history site --kind status -n 0)" "results of status checks: only the newest stays"
}

# Only systemd can validate the expression; after the refusal no file is left.
a_wrong_time_is_refused() {
    assert_status 2 archivist watch add wrong http://a.example --status "every 5min" --crawl "when it rains" --lighthouse no
    assert_contains "$output" "crawl: 'when it rains' is neither 'every SPAN' nor a calendar expression" "what is wrong"
    ! in_capsule test -e /etc/archivist/wrong.watch || fail "a file that nothing can be made of is left"
    archivist watch add wrong http://a.example --crawl daily --lighthouse no >/dev/null
    assert_status 2 archivist watch add --replace wrong http://a.example --crawl "when it rains" --lighthouse no
    assert_contains "$(in_capsule cat /etc/archivist/wrong.watch)" "Crawl=daily" "the file that was to be replaced"
    assert_eq active "$(unit_property archivist-watch-wrong-crawl.timer ActiveState)" "its timer"
    archivist watch remove wrong
    assert_eq "" "$(in_capsule sh -c 'ls /var/lib/systemd/timers/ | grep watch-wrong || true')" "what systemd keeps of the timers"
    assert_eq not-found "$(unit_property archivist-watch-wrong-crawl.timer LoadState)" "the timer of a watch that was removed"
}

takes_times_of_cron() {
    archivist watch add cron http://a.example --status "every 6 hours" --crawl "30 4 * * mon-fri" --lighthouse hour >/dev/null
    assert_eq "active active active" "$(in_capsule systemctl show --property=ActiveState --value 'archivist-watch-cron-*.timer' | xargs)" "timers"
    assert_contains "$(in_capsule systemctl show --property=TimersCalendar archivist-watch-cron-crawl.timer)" \
        "OnCalendar=Mon..Fri *-*-* 04:30:00" "what systemd makes of a cron expression"
    archivist watch remove cron
}

a_kind_that_is_left_out_stops() {
    archivist watch add kinds http://a.example --status "every 1h" --crawl daily --lighthouse no >/dev/null
    archivist watch add --replace kinds http://a.example --status "every 1h" --crawl no --lighthouse no >/dev/null
    assert_eq "active not-found inactive" \
        "$(unit_property archivist-watch-kinds-status.timer ActiveState) $(unit_property archivist-watch-kinds-crawl.timer LoadState) $(unit_property archivist-watch-kinds-crawl.timer ActiveState)" \
        "timers of a watch that was replaced"
    assert_status 2 archivist watch add --replace kinds http://a.example --status no --crawl "when it rains" --lighthouse no
    assert_eq "active" "$(unit_property archivist-watch-kinds-status.timer ActiveState)" "timer of a watch that was not replaced"
    archivist watch remove kinds
    assert_system_running
}

# systemd reads a new file at daemon-reload, and starts nothing of it.
a_file_written_by_hand_has_idle_timers() {
    local said words command="systemctl daemon-reload && systemctl start archivist-watch-byhand-status.timer"
    in_capsule sh -c "printf '[Watch]\nURL=http://a.example\nStatus=every 1h\nLighthouse=no\nCrawl=no\n' >/etc/archivist/byhand.watch
        systemctl daemon-reload"
    for said in "watch list" "watch show byhand" "why byhand"; do
        read -ra words <<<"$said"
        assert_contains "$(archivist "${words[@]}" 2>&1)" "byhand: timers not started; run: $command" "archivist $said"
    done
    assert_contains "$(archivist watch list 2>/dev/null)" "not started" "next run"
    assert_contains "$(archivist doctor 2>&1 || true)" "→ $command" "doctor"
    in_capsule sh -c "$command"
    said=$(archivist watch list 2>&1; archivist why byhand; archivist doctor || true)
    [[ $said != *"not started"* ]] || fail "timers that run: $said"
    archivist watch remove byhand
}

a_bad_file_spoils_no_other() {
    needs a_site_in_all_its_moods
    in_capsule sh -c "printf '[Watch]\nURL=http://a.example\nStatus=every now and then\n' >/etc/archivist/bad.watch; systemctl daemon-reload"
    assert_eq not-found "$(unit_property archivist-watch-bad-status.timer LoadState)" "timer of a bad file"
    assert_eq loaded "$(unit_property archivist-watch-site-status.timer LoadState)" "timer of another"
    in_capsule rm /etc/archivist/bad.watch
    archivist watch remove site
    assert_eq not-found "$(unit_property archivist-watch-site-status.timer LoadState)" "timer of a watch that was removed"
    assert_status 1 archivist watch show site
}

# 200 watches, each checked every 3 minutes at a different second, while endless lighthouse checks occupy the slow pool.
two_hundred() {
    [[ ${EXTENT-} == full ]] || skip "takes ten minutes: only in the full run"
    local n checks p95 most
    # Missed runs of an earlier test would run first.
    in_capsule sh -c "rm -f /var/lib/systemd/timers/stamp-archivist-watch-many*
        for n in \$(seq 200); do
            printf '[Watch]\nURL=http://127.0.0.1:$port/%s\nStatus=every 3min\nSpread=170s\nLighthouse=no\nCrawl=no\n' \$n >/etc/archivist/many\$n.watch
        done
        systemctl daemon-reload
        systemctl start \$(seq --format 'archivist-watch-many%g-status.timer' 200)"
    for n in $(seq 10); do archivist watch run "many$n" --kind lighthouse >/dev/null; done
    # Wait for the first round, its spread, and another round.
    in_capsule sleep 540
    read -r checks p95 most < <(in_capsule sh -c "archivist watch list --json
        for n in \$(seq 200); do archivist watch history many\$n --kind status -n 0 --json; done" | in_capsule python3 $own/lateness.py 180)
    figure "200 watches beside a slow pool that is full: $checks checks, 95 % within $p95 ms, all within $most ms"
    [[ $checks -ge 400 && $p95 -lt 1000 ]] || fail "status checks are late: 95 % of $checks within $p95 ms"
    in_capsule sh -c "systemctl stop 'archivist-watch-many*'; rm /etc/archivist/many*.watch; systemctl daemon-reload"
    in_capsule systemctl stop 'archivist-check-lighthouse-*.service'
    wait_for 20 nothing_is_left
}

cases a_site_in_all_its_moods calls_a_webhook a_bad_certificate the_same_twice_is_one timers_and_list_agree \
    timers_queue_without_an_orchestrator missed_runs_collapse slow_checks_hold_up_no_fast_ones two_hundred \
    results_go_in_time a_wrong_time_is_refused takes_times_of_cron a_kind_that_is_left_out_stops \
    a_file_written_by_hand_has_idle_timers a_bad_file_spoils_no_other
