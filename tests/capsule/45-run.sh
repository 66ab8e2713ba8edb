#!/bin/bash
# `archivist run`: the table, Ctrl-C, the crawl after the death of the command, input and output records, the scope.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

clean() {
    forget_configuration
}

prepare() {
    capsule cp "$(dirname "$0")/run/terminal.py" "$CAPSULE:/opt/terminal.py"
    plugin testquick on_Snapshot__10_testquick.sh <<'SH'
#!/bin/sh
echo kept >kept.txt
SH
    plugin testhold <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
echo held >held.txt
SH
    plugin testfinite on_Snapshot__06_testfinite.finite.bg.sh <<'SH'
#!/bin/sh
echo ready
exec sleep 60
SH
    plugin testbeside on_Snapshot__05_testbeside.daemon.bg.sh <<'SH'
#!/bin/sh
trap 'echo ended >ended.txt; exit 0' TERM
echo ready
while :; do sleep 0.1; done
SH
    plugin testafter on_Snapshot__30_testafter.sh <<'SH'
#!/bin/sh
echo after >after.txt
SH
    plugin testend on_CrawlCleanup__50_testend.sh <<'SH'
#!/bin/sh
echo last >last.txt
SH
    plugin testwrites <<'SH'
#!/bin/sh
printf 'first \033[31mred\n' >&2
echo last >&2
SH
    configure </dev/null
}

held=testbeside,testhold,testafter

# on_terminal STATUS SCRIPT ARGUMENT…: runs `archivist run` on a terminal, expects STATUS, and sets $output to the screen.
on_terminal() {
    local expected=$1 script=$2
    shift 2
    in_capsule rm -f $signs/go
    assert_status "$expected" in_capsule env TERM=xterm python3 /opt/terminal.py "$script" archivist run "$@"
}

# on_terminal_of COMMAND STATUS SCRIPT: the same for another command.
on_terminal_of() {
    # shellcheck disable=SC2086 # words
    assert_status "$2" in_capsule env TERM=xterm python3 /opt/terminal.py "$3" $1
}

# newest WHAT FILTER: queries the newest crawl.
newest() { query "$2" list "$1" "$(query '.[0].id' list crawls --limit 1)" --limit 0; }

# The statuses of the results of the newest crawl, by plugin.
results() { newest results 'map(.plugin + "=" + .status) | sort'; }

shows_a_table() {
    on_terminal 0 "" --plugins testquick http://table.test/
    assert_contains "$output" "testquick" "the table"
    assert_contains "$output" "succeeded" "the table"
    assert_contains "$output" "1 page, results: 1 succeeded" "the summary"
    assert_nothing_is_left
}

tells_what_it_would_do() {
    local before
    before=$(query '.crawls' status)
    assert_status 0 archivist run --dry-run --plugins testquick,testhold --disable testhold --timeout 7 http://dry.test/
    assert_contains "$output" "each page  testquick  foreground  7.0s" "--dry-run"
    assert_contains "$output" "disabled by TESTHOLD_ENABLED" "--dry-run"
    assert_eq "$before" "$(query '.crawls' status)" "crawls after a dry run"
    assert_status 2 archivist run --dry-run --plugins nosuch http://dry.test/
}

interrupted_then() { echo "see testhold :: run timeout 30 sh -c 'until systemctl -q is-active archivist-hook-testhold-s*.service; do sleep 0.1; done' :: interrupt :: see interrupted testhold :: see abort (a)? :: $1"; }

skips() {
    on_terminal 0 "$(interrupted_then 'type')" --plugins $held http://skip.test/
    assert_eq "testafter=succeeded testbeside=noresults testhold=skipped" "$(results | sed 's/testbeside=succeeded/testbeside=noresults/')" "after Enter"
    assert_eq "interrupted by user" "$(newest results 'of("testhold") | map(.error)')" "why it is skipped"
    assert_eq '{"kind":"interrupted"}' "$(newest runs 'of("testhold") | map(.outcome)')" "the run's outcome"
    assert_nothing_is_left
}

# After the last foreground hook, Ctrl-C interrupts the background hooks that the page waits for.
interrupts_the_background() {
    on_terminal 0 "run timeout 30 sh -c 'until systemctl -q is-active archivist-hook-testfinite-s*.service; do sleep 0.1; done' ::
        see testquick :: see succeeded :: interrupt :: see interrupted testfinite :: type" --plugins testquick,testfinite,testbeside http://finite.test/
    assert_contains "$(results)" "testfinite=skipped testquick=succeeded" "after Enter"
    assert_nothing_is_left
}

retries() {
    on_terminal 0 "$(interrupted_then "run touch $signs/go :: type r")" --plugins $held http://retry.test/
    assert_contains "$(results)" "testhold=succeeded" "after r"
    assert_eq 2 "$(newest runs 'of("testhold") | length')" "runs of what was run again"
    assert_eq "skipped succeeded" "$(in_capsule cat "$(newest snapshots '.[0].directory')/index.jsonl" |
        gojq --raw-output 'select(.type == "Process" and .plugin == "testhold").status' | xargs)" "processes in the index"
    assert_nothing_is_left
}

aborts() {
    on_terminal 130 "$(interrupted_then 'type what? :: see abort (a)? :: type a')" --plugins $held,testend http://abort.test/
    assert_eq "cancelled aborted by request" "$(newest crawls '.[0] | [.status, .reason]')" "after a"
    assert_eq "testbeside=failed testend=succeeded testhold=skipped" "$(results)" "after a"
    in_capsule test -e "$(newest snapshots '.[0].directory')/testbeside/ended.txt" || fail "a daemon was not asked to end"
    assert_eq "" "$(what_is_left)" "left when the command had returned"

    on_terminal 130 "$(interrupted_then 'interrupt')" --plugins $held http://twice.test/
    assert_eq cancelled "$(newest crawls '.[0].status')" "after a second Ctrl-C"
    assert_eq "" "$(what_is_left)" "left when the command had returned"
}

# background URL: starts `archivist run` without a terminal, waits for its hook, and sets $pid.
background() {
    in_capsule rm -f $signs/go
    in_capsule sh -c "archivist run --plugins $held $1 >/dev/null 2>&1 </dev/null & echo \$! >/run/test-run.pid"
    pid=$(in_capsule cat /run/test-run.pid)
    wait_for 20 has_unit "archivist-hook-testhold-s*.service"
}

is_cancelled() { [[ $(newest crawls '.[0].status') == cancelled ]]; }

takes_the_crawl_along() {
    local signal
    for signal in KILL HUP INT; do
        background "http://signal.test/$signal"
        in_capsule kill -s $signal "$pid"
        wait_for 20 is_cancelled
        assert_nothing_is_left
    done
    assert_eq "aborted by request" "$(newest crawls '.[0].reason')" "reason after Ctrl-C without a terminal"
    on_terminal 129 "$(interrupted_then 'hang-up')" --plugins $held http://hangup.test/
    wait_for 20 is_cancelled
    assert_contains "$(newest crawls '.[0].reason')" "the command that ran it in the foreground has ended" "reason after the terminal was closed"
    assert_nothing_is_left
}

# The page is archived once, also if the first command is killed.
the_same_command_follows_the_first() {
    local first before
    before=$(query 'length' list crawls --limit 0)
    background http://twins.test/
    first=$pid
    in_capsule sh -c "archivist run --plugins $held http://twins.test/ >/run/test-second 2>/run/test-told </dev/null; echo \$? >>/run/test-told" &
    wait_for 20 in_capsule grep -q "following it" /run/test-told
    assert_contains "$(in_capsule cat /run/test-told)" "(pid=$first) archives the same as" "what the second says"
    in_capsule kill -s KILL "$first"
    in_capsule touch $signs/go
    wait
    assert_eq 0 "$(in_capsule tail -n 1 /run/test-told)" "the exit status of the second"
    assert_eq 1 "$(($(query 'length' list crawls --limit 0) - before))" "crawls"
    assert_eq "sealed" "$(newest crawls '.[0].status')" "the crawl"
    assert_contains "$(in_capsule cat /run/test-second)" '"plugin":"testhold"' "the records of the second"
    assert_nothing_is_left
}

goes_on_with_the_next_orchestrator() {
    background http://restart.test/
    restart
    in_capsule touch $signs/go
    wait_for 30 run_is_over
    assert_eq sealed "$(newest crawls '.[0].status')" "after a restart of the orchestrator"
    background http://restart.test/kill
    restart
    wait_for 20 eval '[[ $(archivist status) == *testhold* ]]'
    in_capsule kill -s KILL "$pid"
    wait_for 20 is_cancelled
    assert_nothing_is_left
}

run_is_over() { ! in_capsule kill -s 0 "$pid" 2>/dev/null; }

is_in_a_scope() {
    local scope
    background http://scope.test/
    scope=$(in_capsule systemctl list-units --plain --no-legend "archivist-run-$pid-*.scope" | cut -d' ' -f1)
    assert_eq "/archivist.slice/$scope" "$(unit_property "$scope" ControlGroup)" "control group of the scope"
    assert_contains "$(in_capsule systemctl --no-pager status "$scope")" "archivist run --plugins" "systemctl status"
    in_capsule touch $signs/go
    wait_for 20 run_is_over
    wait_for 20 eval '! has_unit "archivist-run-*.scope"'
    assert_nothing_is_left
}

is_registered() { [[ $(query '.commands | map(.pid)' status) == "$pid" ]]; }

is_shown_by_status() {
    local want
    background http://shown.test/
    wait_for 20 is_registered
    want="Foreground: run of http://shown.test/, crawl $(newest crawls '.[0].id'), in $(in_capsule readlink "/proc/$pid/cwd"), pid $pid, since "
    assert_contains "$(archivist status)" "$want" "archivist status"
    restart
    wait_for 20 is_registered
    assert_contains "$(archivist status)" "$want" "with the next orchestrator"
    in_capsule touch $signs/go
    wait_for 20 run_is_over
    wait_for 20 eval '[[ $(archivist status) != *Foreground* ]]'
    assert_nothing_is_left
}

# watcher NAME OPTION…: starts `archivist status --watch`; its output is in $signs/NAME.
watcher() { in_capsule sh -c "archivist status --watch ${*:2} >>$signs/$1 2>&1 </dev/null & echo \$! >>/run/test-watchers.pid"; }

# Each change is a document, also after a restart. A watcher does not start an orchestrator that was stopped.
is_watched() {
    local sealed
    in_capsule rm -f /run/test-watchers.pid $signs/watched.*
    watcher watched.json --json
    watcher watched.txt
    background http://watched.test/
    wait_for 20 has_seen 'any(.running[]; .unit | contains("testhold"))'
    wait_for 20 has_seen "any(.commands[]; .pid == $pid)"
    in_capsule touch $signs/go
    wait_for 20 run_is_over
    wait_for 20 has_seen '.running == [] and .commands == []'
    in_capsule truncate --size 0 $signs/watched.json
    in_capsule systemctl stop $service
    wait_for 20 in_capsule grep -q "Status: not running" $signs/watched.txt
    assert_eq inactive "$(in_capsule systemctl is-active $service || true)" "the orchestrator, which is watched"
    in_capsule systemctl start $service
    wait_for 20 has_seen '.running == []'
    in_capsule sh -c 'kill -INT $(cat /run/test-watchers.pid)'
    sealed=$(query '.crawls.sealed' status)
    on_terminal_of "archivist status --watch" 0 "see $sealed sealed :: run archivist add --plugins testquick http://watched.test/2 :: see $((sealed + 1)) sealed :: interrupt"
    assert_nothing_is_left
}

# has_seen FILTER: whether a document of the watcher fits.
has_seen() { in_capsule cat $signs/watched.json | gojq --exit-status --slurp "any(.[]; $1)" >/dev/null; }

# types LINES: prints the type of each record with its distinguishing value.
types() { gojq --raw-output '[.type, .plugin // .url // "", .status // ""] | join(" ")' <<<"$1"; }

records() {
    local told id again
    told=$(in_capsule sh -c 'printf "%s\n" "# pages" http://pipe.test/ "{\"type\":\"Odd\",\"x\":1}" "{\"type\":\"Snapshot\",\"id\":\"0198\",\"url\":\"http://pipe.test/2\",\"depth\":3}" |
        archivist run --plugins testquick')
    assert_eq '{"type":"Odd","x":1}' "$(sed -n 2p <<<"$told")" "an unknown record"
    assert_eq "ArchiveResult testquick succeeded
ArchiveResult testquick succeeded
Odd 
Process testquick succeeded
Process testquick succeeded
Snapshot http://pipe.test/ 
Snapshot http://pipe.test/ 
Snapshot http://pipe.test/2 
Snapshot http://pipe.test/2 " "$(types "$told" | sed 's/ *$/ /; s/succeeded $/succeeded/' | LC_ALL=C sort)" "records"

    id=$(newest snapshots '.[0].id')
    again=$(in_capsule sh -c "echo '{\"type\":\"ArchiveResult\",\"id\":\"$id/testquick/on_Snapshot__10_testquick\",\"status\":\"failed\"}' | archivist run")
    assert_eq 4 "$(wc -l <<<"$again")" "the record, the page, a process, a result"
    assert_eq 2 "$(query 'of("testquick") | length' list runs "$id")" "runs of the result"
    assert_status 0 archivist run --snapshot-id "$id"
    assert_contains "$output" "$id is complete" "a snapshot that is complete"
    assert_nothing_is_left
}

# Ids in records of another archive are unknown here, or belong to other pages; a bad record does not affect the others.
records_of_others() {
    local id
    id=$(newest snapshots '.[0].id')
    assert_status 3 in_capsule sh -c "printf '%s\n' http://own.test/ \
        '{\"type\":\"Snapshot\",\"id\":\"$id\",\"url\":\"http://other.test/taken\"}' \
        '{\"type\":\"Snapshot\",\"id\":\"s99999999\",\"url\":\"http://other.test/unknown\"}' \
        '{\"type\":\"Snapshot\",\"id\":\"s99999999\"}' | archivist run --plugins testquick"
    assert_contains "$output" "s99999999" "words about the bad record"
    assert_eq "http://other.test/taken http://other.test/unknown http://own.test/" \
        "$(newest snapshots 'map(.url) | sort')" "pages"
    assert_eq "testquick=succeeded testquick=succeeded testquick=succeeded" "$(results)" "results"
    assert_nothing_is_left
}

# A crawl of another archive: what no plugin knows is left out, and ArchiveBox's names are known.
records_of_other_archives() {
    assert_status 3 in_capsule sh -c "printf '%s\n' \
        '{\"type\":\"Crawl\",\"urls\":[\"http://own.test/1\",\"http://own.test/2\"],\"config\":{\"ODD_SETTING\":\"x\",\"MAX_URLS\":1,\"PLUGINS\":\"testquick\"}}' |
        archivist run -"
    assert_contains "$output" "ignored settings of a crawl that no plugin has: ODD_SETTING" "the message"
    assert_eq "CRAWL_MAX_URLS=1" "$(newest crawls '.[0].config | to_entries | map("\(.key)=\(.value)")')" "its settings"
    assert_eq "cancelled sealed" "$(newest snapshots 'map(.status) | sort')" "its pages"
    assert_nothing_is_left
}

# ONLY_NEW of ArchiveBox leaves out what the archive has.
records_of_known_pages() {
    local before record='{"type":"Crawl","urls":"http://own.test/1","config":{"ONLY_NEW":%s,"PLUGINS":"testquick"}}\n'
    before=$(newest crawls '.[0].id')
    assert_status 0 in_capsule sh -c "printf '$record' true | archivist run -"
    assert_contains "$output" "nothing new: the archive has this URL, in $before" "the message"
    assert_eq "$before" "$(newest crawls '.[0].id')" "the newest crawl"
    assert_status 0 in_capsule sh -c "printf '$record' false | archivist run -"
    assert_eq "http://own.test/1" "$(newest snapshots 'map(.url)')" "a page that is archived again"
    assert_nothing_is_left
}

takes_up_a_crawl() {
    local crawl id
    on_terminal 130 "$(interrupted_then 'type a')" --plugins $held http://again.test/
    crawl=$(newest crawls '.[0].id') id=$(newest snapshots '.[0].id')
    in_capsule touch $signs/go
    assert_status 0 archivist run --crawl-id "$crawl"
    assert_contains "$(results)" "testhold=succeeded" "a crawl that was taken up"
    assert_eq 0 "$(query '.snapshot.snapshot | field("results").failed // 0' show "$id")" "failed results"

    # A crawl that ran before continues when the command ends.
    in_capsule rm -f $signs/go
    crawl=$(add --plugins $held http://joined.test/)
    wait_for 20 has_unit "archivist-hook-testhold-s*.service"
    in_capsule sh -c "archivist run --crawl-id $crawl >/dev/null 2>&1 </dev/null & echo \$! >/run/test-run.pid"
    pid=$(in_capsule cat /run/test-run.pid)
    wait_for 20 has_unit "archivist-run-$pid-*.scope"
    in_capsule kill -s KILL "$pid"
    wait_for 20 run_is_over
    assert_eq started "$(crawl_status "$crawl")" "a crawl that was only joined"
    in_capsule touch $signs/go
    wait_for 20 is_over "$crawl"
    assert_nothing_is_left
}

# Lines that a hook writes are printed, also the last ones, and terminal escapes are not.
shows_the_journal() {
    assert_status 0 archivist run --debug --plugins testwrites http://debug.test/
    assert_contains "$output" "testwrites (s" "--debug"
    assert_contains "$output" "[31mred" "--debug"
    [[ $output != *$'\033[31m'* ]] || fail "an escape sequence reached the terminal"
    assert_contains "$output" "): last" "--debug"
    # In version 252, messages of systemd do not have the fields of the unit that they are about.
    [[ $RELEASE == bookworm ]] || assert_contains "$output" "systemd (s" "--debug"
    assert_nothing_is_left
}

copies() {
    local id
    in_capsule rm -rf /srv/copy
    assert_status 0 archivist run --plugins testquick --output /srv/copy http://copy.test/
    id=$(newest snapshots '.[0].id')
    assert_eq kept "$(in_capsule cat "/srv/copy/$id/testquick/kept.txt")" "the copy"
    # A complete page is copied again.
    in_capsule rm -rf /srv/copy
    assert_status 0 archivist run --snapshot-id "$id" --output /srv/copy
    assert_eq kept "$(in_capsule cat "/srv/copy/$id/testquick/kept.txt")" "the copy of a complete page"
    in_capsule rm -rf /srv/copy
}

# The page lands in the directory itself, which belongs to the caller and is on another file system.
lands_in_a_directory() {
    local before to=/dev/shm/landed
    in_capsule rm -rf $to
    assert_status 0 archivist run --plugins testquick --dir $to http://land.test/
    assert_eq "root:root 644" "$(in_capsule stat --format='%U:%G %a' $to/testquick/kept.txt)" "the copy"
    in_capsule test -e $to/index.jsonl || fail "the index was not copied"
    before=$(query '.crawls' status)
    assert_status 2 archivist run --plugins testquick --dir $to http://land.test/ http://land.test/2
    assert_contains "$output" "one page" "two pages"
    assert_status 2 archivist run --plugins testquick --dir /var/lib/archivist/archive/mine http://land.test/
    assert_status 1 archivist run --plugins testquick --dir /proc/mine http://land.test/
    assert_eq "$before" "$(query '.crawls' status)" "crawls of refused commands"
    in_capsule rm -rf $to
}

# A command that is killed copies nothing; the page is taken up with its id.
lands_after_a_kill() {
    local id to=/srv/landed
    in_capsule rm -rf $signs/go $to
    in_capsule sh -c "archivist run --plugins testhold --dir $to http://land.test/kill >/dev/null 2>&1 </dev/null & echo \$! >/run/test-run.pid"
    wait_for 20 has_unit "archivist-hook-testhold-s*.service"
    in_capsule kill -s KILL "$(in_capsule cat /run/test-run.pid)"
    wait_for 20 is_cancelled
    assert_nothing "files of a page that was not finished" in_capsule ls -A $to
    in_capsule touch $signs/go
    id=$(newest snapshots '.[0].id')
    assert_status 0 archivist run --snapshot-id "$id" --dir $to
    assert_eq held "$(in_capsule cat $to/testhold/held.txt)" "the copy"
    in_capsule rm -rf $to
}

cases shows_a_table tells_what_it_would_do skips interrupts_the_background retries aborts takes_the_crawl_along the_same_command_follows_the_first \
    goes_on_with_the_next_orchestrator is_in_a_scope is_shown_by_status is_watched records records_of_others records_of_other_archives \
    records_of_known_pages takes_up_a_crawl shows_the_journal copies lands_in_a_directory lands_after_a_kill
