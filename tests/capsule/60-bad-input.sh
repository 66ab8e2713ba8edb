#!/bin/bash
# Bad URLs, bad plugins, a full disk, a broken database and configuration: each is a clear error or a recorded failure, the rest
# continues, nothing is lost.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

state=/var/lib/archivist
database=$state/archivist.sqlite3

clean() {
    unmount $state
    in_capsule sh -c "rm -rf /srv/odd-plugins; [ ! -e $database.kept ] || mv $database.kept $database"
    forget_configuration
}

prepare() {
    plugin testurl <<'SH'
#!/bin/sh
printf '%s\n' "$1" >argument.txt
SH
    configure </dev/null
}

# tests/cli.rs and the tests of the types have what is refused, and why.
archives_the_good_ones_among_bad_urls() {
    assert_status 3 archivist add --wait --plugins testurl http://good.test/ nonsense
    assert_contains "$output" "argument 2: 'nonsense' refused" "error of the bad URL"
    assert_contains "$output" "1 page" "the good URL"
}

# Text that a shell or systemd would expand reaches the hook unchanged.
expands_nothing() {
    local odd crawl
    # shellcheck disable=SC2016
    odd='http://odd.test/$(touch%20/tmp/pwned)?a=`id`&b=${HOME}&c=%n%%i$$&d='"'"'q'"'"'&e=;|\x'
    crawl=$(archivist add --json --wait --plugins testurl "$odd" | gojq --raw-output --slurp '.[0].crawl')
    odd=${odd//\'/%27}
    assert_eq "--url=$odd" "$(in_capsule cat "$(query '.[0].directory' list snapshots "$crawl")/testurl/argument.txt")" "argument of the hook"
    assert_eq "$odd" "$(query '.[0].url' list snapshots "$crawl")" "the URL in the database"
    ! in_capsule test -e /tmp/pwned || fail "a URL was run"
}

takes_a_hundred_thousand_lines() {
    local crawl
    in_capsule sh -c 'seq -f http://list.test/%g 100000 >/tmp/list.txt; echo nonsense >>/tmp/list.txt'
    assert_status 3 archivist add --file /tmp/list.txt --plugins testurl
    assert_contains "$output" "queued 100000 URLs" "a file of 100,000 lines"
    assert_contains "$output" "line 100001" "its last line"
    crawl=$(query '.[0].id' list crawls --limit 1)
    archivist cancel "$crawl"
    wait_for 60 is_over "$crawl"
    assert_eq 100000 "$(query '.[0].snapshots | add' list crawls "$crawl")" "its pages"
    # More than the limit of a bus message, at which the bus would disconnect the orchestrator: the list comes in parts.
    assert_eq 100000 "$(query 'map(.url) | unique | length' list snapshots "$crawl" --limit 0)" "all of them"
    assert_eq 1000 "$(query 'length' list snapshots "$crawl" --limit 1000)" "some of them"
    assert_contains "$(archivist show "$crawl")" " pages; all: archivist list snapshots $crawl --limit 0" "the hint at the remaining ones"
    assert_nothing_is_left
    in_capsule rm /tmp/list.txt
}

uses_the_exit_statuses() {
    assert_status 0 archivist list crawls
    assert_status 1 archivist show s999999999
    assert_status 2 archivist add --plugins nosuchplugin http://a.test/
    assert_status 2 archivist add --set NO_SUCH_SETTING=1 http://a.test/
}

# Hooks that misbehave, each on a page with a correct hook: NAME, the status of its result, and a part of the reason.
survives_bad_hooks() {
    local hooks hook name status reason
    mapfile -t hooks < <(bad_hooks)
    [[ ${#hooks[@]} -eq 8 ]] || fail "${#hooks[@]} bad hooks"
    restart
    for hook in "${hooks[@]}"; do
        IFS='|' read -r name status reason <<<"$hook"
        assert_hook "$name" "$status" "$reason"
    done
    assert_nothing_is_left
}

# Standard error of a hook is in the journal, up to a rate limit that the administrator has set; the number of suppressed messages is shown.
caps_a_flood_of_complaints() {
    plugin testcomplaints <<'SH'
#!/bin/sh
timeout 8 yes complaint >&2
echo '{"type": "ArchiveResult", "status": "succeeded"}'
SH
    local crawl page unit lines limit=/etc/systemd/system/archivist-hook-testcomplaints-.service.d
    in_capsule sh -c "mkdir -p $limit; printf '[Service]\nLogRateLimitBurst=1000\n' >$limit/burst.conf; systemctl daemon-reload"
    restart
    assert_hook testcomplaints succeeded ""
    crawl=$(query '.[0].id' list crawls --limit 1)
    unit=$(query "of(\"testcomplaints\") | map(.unit)" list runs "$crawl")
    lines=$(journal -u "$unit" -o cat | grep -c '^complaint$')
    ((lines >= 1000 && lines < 100000)) || fail "$lines lines of a flood are in the journal"
    page=$(query '.[0].id' list snapshots "$crawl")
    assert_contains "$(archivist logs "$page" --hook testcomplaints | grep -v 'complaint$')" "Suppressed " "what journald says of the flood"
    assert_contains "$(archivist show "$page")" "messages suppressed" "the result of the flood"
    lines=$(query '.snapshot.runs | of("testcomplaints") | only.suppressed' show "$page")
    ((lines > 1000)) || fail "$lines messages suppressed"
    in_capsule sh -c "rm -r $limit; systemctl daemon-reload"
    # archivist logs works without an orchestrator and does not start it.
    stop_all
    assert_contains "$(archivist logs "$page" --lines 100)" testcomplaints "the journal without an orchestrator"
    assert_eq inactive "$(unit_property $service ActiveState)" "an orchestrator that was not asked for"
    restart
}

bad_hooks() {
    plugin testflood <<'SH'
#!/bin/sh
head -c 100000000 /dev/zero | tr '\0' 'a'
SH
    echo 'testflood|failed|printed more than'
    plugin testbinary <<'SH'
#!/bin/sh
head -c 1000000 /dev/urandom
SH
    echo 'testbinary|noresults|'
    plugin testhalf <<'SH'
#!/bin/sh
echo kept >kept.txt
printf '{"type":"ArchiveResult","status":"fai'
SH
    echo 'testhalf|succeeded|'
    plugin testnothing <<'SH'
#!/bin/sh
SH
    echo 'testnothing|noresults|'
    plugin testsegfault <<'SH'
#!/bin/sh
kill -SEGV $$
SH
    echo 'testsegfault|failed|SIGSEGV'
    plugin testinterpreter <<'SH'
#!/no/such/interpreter
SH
    echo 'testinterpreter|failed|interpreter'
    plugin testexit <<'SH'
#!/bin/sh
exit 7
SH
    echo 'testexit|failed|exit code 7'
    plugin testslow <<'SH'
#!/bin/sh
sleep 100
SH
    in_capsule sh -c "echo '{\"type\": \"object\", \"properties\": {\"TESTSLOW_TIMEOUT\": {\"type\": \"integer\", \"default\": 1}}}' >$plugins/testslow/config.json"
    echo 'testslow|failed|time limit'
}

assert_hook() {
    local name=$1 status=$2 reason=$3 expected=0 crawl
    [[ $status != failed ]] || expected=3
    assert_status $expected archivist add --wait --plugins "$name,testurl" "http://bad.test/$name"
    crawl=$(query '.[0].id' list crawls --limit 1)
    assert_eq "$status" "$(query "of(\"$name\") | map(.status)" list results "$crawl")" "result of $name"
    assert_eq succeeded "$(query 'of("testurl") | map(.status)' list results "$crawl")" "result of the correct hook with $name"
    [[ -z $reason ]] || assert_contains "$(query "of(\"$name\") | map(.error)" list results "$crawl")" "$reason" "why $name failed"
}

# A hook that is not executable is reported and not loaded (except old scripts for bash, Python and Node); a hook whose file is
# removed after it was loaded fails.
survives_hooks_that_cannot_be_run() {
    plugin testplain on_Snapshot__20_testplain.pl </dev/null
    plugin testvanish <<<"#!/bin/sh"
    in_capsule chmod 644 $plugins/testplain/on_Snapshot__20_testplain.pl
    restart
    assert_contains "$(archivist plugins 2>&1)" "not executable" "a hook that is not executable"
    in_capsule rm $plugins/testvanish/on_Snapshot__20_testvanish.sh
    assert_hook testvanish failed "cannot be executed"
    in_capsule rm -r $plugins/testvanish $plugins/testplain
    assert_nothing_is_left
}

# The start job of a unit is done before systemd sets up its sandbox: the exit status of the main process is the reason.
reports_hooks_whose_sandbox_fails() {
    local settings=/run/systemd/system/archivist-hook-testsandbox-.service.d
    plugin testsandbox <<<'#!/bin/true'
    in_capsule sh -c "mkdir -p $settings; printf '[Service]\nBindReadOnlyPaths=/nonexistent\n' >$settings/50-test.conf; systemctl daemon-reload"
    restart
    assert_hook testsandbox failed "its mount namespace could not be set up"
    in_capsule rm -r $settings $plugins/testsandbox
    in_capsule systemctl daemon-reload
    assert_nothing_is_left
}

# PID 1 must run only files that no user but root can write.
refuses_plugins_of_others() {
    plugin testowner <<'SH'
#!/bin/sh
echo run >run.txt
SH
    in_capsule chown nobody $plugins/testowner
    assert_untrusted $plugins/testowner
    in_capsule chown root $plugins/testowner
    in_capsule chmod o+w $plugins/testowner/on_Snapshot__20_testowner.sh
    assert_untrusted $plugins/testowner/on_Snapshot__20_testowner.sh
    in_capsule rm -r $plugins/testowner
}

# assert_untrusted PATH: `archivist plugins` reports PATH, and no hook of plugin testowner runs.
assert_untrusted() {
    restart
    assert_contains "$(archivist plugins 2>&1)" "$1" "a plugin that others can write"
    archivist add --wait --plugins testowner,testurl http://bad.test/owner || true
    assert_eq 0 "$(query 'of("testowner") | length' list runs)" "runs of plugin testowner"
}

# The archive on a small file system: when it is full, commands report it, and work continues when there is space.
survives_a_full_disk() {
    local crawl small=${drop_in%/*}/91-small.conf
    in_capsule sh -c "printf '[Archive]\nMinFreeSpace=0\n' >$small"
    stop_all
    in_capsule sh -c "mount -t tmpfs -o size=24m,mode=755 tmpfs $state && systemd-tmpfiles --create archivist.conf"
    restart
    in_capsule dd if=/dev/zero of=$state/filler bs=1M status=none 2>/dev/null || true
    assert_status 1 archivist add --plugins testurl http://full.test/1
    assert_contains "$output" "full" "error on a full disk"
    has_unit $service || fail "the orchestrator died of a full disk"
    assert_contains "$(unit_property $service StatusText)" "full" "STATUS= on a full disk"
    in_capsule rm $state/filler
    assert_status 0 archivist add --wait --plugins testurl http://full.test/2
    crawl=$(query '.[0].id' list crawls --limit 1)
    assert_eq sealed "$(crawl_status "$crawl")" "a crawl after there is space again"
    assert_nothing_is_left
    unmount $state
    in_capsule rm "$small"
    restart
}

# refused WORDS…: the service does not start, logs WORDS (also if journald reads them after the end of the process), and
# is not restarted; then the exit status of commands is 4.
assert_start_refused() {
    local cursor words said began
    cursor=$(in_capsule journalctl --quiet -n 0 --show-cursor)
    in_capsule systemctl reset-failed $service 2>/dev/null || true
    in_capsule systemctl kill --kill-whom=main --signal=STOP systemd-journald.service
    ! in_capsule systemctl restart $service 2>/dev/null || fail "the orchestrator started"
    in_capsule systemctl kill --kill-whom=main --signal=CONT systemd-journald.service
    in_capsule journalctl --sync
    said=$(in_capsule journalctl --quiet --no-pager --output=cat -u $service --after-cursor="${cursor#-- cursor: }")
    for words in "$@"; do assert_contains "$said" "$words" "why the orchestrator does not start"; done
    assert_eq failed "$(in_capsule systemctl is-active $service || true)" "state of a service that must be looked at"
    began=$EPOCHSECONDS
    assert_status 4 archivist status
    # A damaged file is not tried again before it has changed.
    [[ $output == *"systemctl status"* || $output == *"it starts again when the file has changed"* ]] || fail "what to do about it: $output"
    for words in "$@"; do assert_contains "$output" "$words" "the reason in the error of a command"; done
    ((EPOCHSECONDS < began + 10)) || fail "people wait $((EPOCHSECONDS - began)) s for that"
}

refuses_databases() {
    local before
    in_capsule systemctl stop $service
    in_capsule sh -c "mv $database $database.kept; rm -f $database-wal $database-shm; head -c 8192 /dev/urandom >$database"
    before=$(in_capsule sha256sum $database)
    assert_start_refused "is not a database of archivist" "nothing was changed"
    assert_eq "$before" "$(in_capsule sha256sum $database)" "the garbage"

    in_capsule python3 -c "
import sqlite3
database = sqlite3.connect('$database.newer')
database.execute('PRAGMA user_version = 999')
database.execute('CREATE TABLE later (x)')
database.commit()"
    in_capsule mv $database.newer $database
    before=$(in_capsule sha256sum $database)
    assert_start_refused "newer archivist" "schema 999"
    assert_eq "$before" "$(in_capsule sha256sum $database)" "the newer database"

    in_capsule sh -c "rm -f $database $database-wal $database-shm; mv $database.kept $database"
    restart
    assert_status 0 archivist status
}

judges_the_configuration() {
    in_capsule sh -c "printf '[Orchestrator]\nNoSuchKey=1\n' >>$drop_in"
    restart
    local line
    line=$(in_capsule sh -c "wc -l <$drop_in")
    assert_contains "$(journal --output=cat -u $service _PID="$(unit_property $service MainPID)")" \
        "$drop_in:$line" "warning of an unknown key"
    assert_status 1 archivist config
    assert_contains "$output" "NoSuchKey" "archivist config"
    in_capsule sh -c "printf 'WorkersMax=many\n' >>$drop_in"
    assert_start_refused "$drop_in:$((line + 1))" "WorkersMax"
    in_capsule sed -i '/NoSuchKey/d; /WorkersMax/d' $drop_in
    restart
    assert_status 0 archivist status
}

# The orchestrator dies, and the next one refuses its configuration: a command that follows a crawl prints the reason.
ends_commands_that_wait() {
    local crawl
    plugin testhold <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
SH
    restart
    in_capsule sh -c "rm -f $signs/go $signs/status
        { archivist add --wait --plugins testhold http://waits.test/; echo \$? >$signs/status; } >$signs/said 2>&1 </dev/null &"
    wait_for 20 has_unit "archivist-hook-testhold-s*.service"
    in_capsule sh -c "printf '[Orchestrator]\nWorkersMax=many\n' >>$drop_in"
    in_capsule systemctl kill --signal=KILL $service
    wait_for 15 in_capsule test -e $signs/status
    assert_eq 4 "$(in_capsule cat $signs/status)" "status of a command that followed the crawl"
    assert_contains "$(in_capsule cat $signs/said)" "WorkersMax" "what it says"
    in_capsule sed -i '/WorkersMax/d' $drop_in
    in_capsule touch $signs/go
    restart
    crawl=$(query '.[0].id' list crawls --limit 1)
    wait_for 20 is_over "$crawl"
    assert_nothing_is_left
}

cases archives_the_good_ones_among_bad_urls expands_nothing uses_the_exit_statuses survives_bad_hooks caps_a_flood_of_complaints \
    survives_hooks_that_cannot_be_run reports_hooks_whose_sandbox_fails refuses_plugins_of_others \
    takes_a_hundred_thousand_lines survives_a_full_disk refuses_databases judges_the_configuration ends_commands_that_wait
