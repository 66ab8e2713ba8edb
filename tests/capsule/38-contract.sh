#!/bin/bash
# The contract of hooks beyond what built-in plugins use: concurrent hooks, daemons, and the records of hooks of a crawl.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

clean() {
    signal_journal CONT
    in_capsule systemctl stop test-sonic.service 2>/dev/null || true
    in_capsule sh -c "systemctl stop archivist-sonic.service; rm -rf /var/lib/archivist/index/*/sonic $plugins/search_backend_sonic" 2>/dev/null || true
    in_capsule rm -rf /usr/local/bin/sonic /usr/local/bin/test-missing /opt/sonic "${drop_in%/*}/91-test.conf"
    forget_configuration
}

prepare() {
    missing_plugins
    deriving_plugins
    asking_plugins
    sonic_plugin
    configure </dev/null
}

# A finite hook that creates a file for three foreground hooks: one of them requires the end of that hook.
missing_plugins() {
    plugin testbrings on_Snapshot__10_testbrings.finite.bg.sh <<'SH'
#!/bin/sh
echo ready
until [ -e ../testlast/ran ]; do sleep 0.1; done
echo brought >brought.txt
SH
    plugin testmissed on_Snapshot__20_testmissed.sh <<'SH'
#!/bin/sh
cat ../testbrings/brought.txt >/dev/null && cp ../testbrings/brought.txt got.txt
SH
    plugin testhalf on_Snapshot__21_testhalf.sh <<'SH'
#!/bin/sh
echo half >half.txt
exit 1
SH
    plugin testnever on_Snapshot__22_testnever.sh <<'SH'
#!/bin/sh
exit 1
SH
    plugin testtext on_Snapshot__23_testtext.sh <<'SH'
#!/bin/sh
[ -e ../testbrings/brought.txt ] || { echo '{"type": "ArchiveResult", "status": "noresults", "output_str": "no page yet"}'; exit 0; }
cp ../testbrings/brought.txt text.txt
SH
    plugin testskips on_Snapshot__24_testskips.sh <<'SH'
#!/bin/sh
[ -e ../testbrings/brought.txt ] || exit 10
cp ../testbrings/brought.txt text.txt
SH
    plugin testfew on_Snapshot__10_testfew.finite.bg.sh <<'SH'
#!/bin/sh
echo few >few.txt
until [ -e ../testlast/ran ]; do sleep 0.1; done
SH
    plugin testawaits on_Snapshot__19_testawaits.sh <<'SH'
#!/bin/sh
until [ -e ../testfew/few.txt ]; do sleep 0.1; done
echo few >awaited.txt
SH
    plugin testdaemon on_Snapshot__15_testdaemon.daemon.bg.sh <<'SH'
#!/bin/sh
trap 'date +%s%N >ended.txt; exit 0' TERM
echo ready
while :; do sleep 0.1; done
SH
    plugin testlast on_Snapshot__30_testlast.sh <<'SH'
#!/bin/sh
echo ran >ran
SH
}

# schema NAME: stdin is the config.json of a plugin.
schema() { in_capsule sh -c "cat >$plugins/$1/config.json"; }

# A plugin whose setup hooks pass settings to later hooks.
deriving_plugins() {
    plugin testderive on_Crawl__10_testderive.sh <<'SH'
#!/bin/sh
cat <<RECORDS
{"type": "Machine", "_method": "update", "key": "config/TESTDERIVE_BINARY", "value": "/opt/derived"}
{"type": "Machine", "config": {"TESTDERIVE_CHOSEN": "by hook", "TESTDERIVE_LEVEL": "high", "TESTDERIVE_ENABLED": "false"}}
{"type": "Machine", "config": {"PATH": "/tmp/evil", "LD_PRELOAD": "/tmp/evil.so", "NODE_OPTIONS": "--require=/tmp/evil", "CRAWL_MAX_URLS": "1"}}
{"type": "Binary", "name": "wget", "abspath": "/tmp/evil", "version": "6.6.6", "env": {"LD_PRELOAD": "/tmp/evil.so"}}
RECORDS
SH
    schema testderive <<'JSON'
{"type": "object", "properties": {"TESTDERIVE_BINARY": {"type": "string", "default": "none"}, "TESTDERIVE_CHOSEN": {"type": "string"},
    "TESTDERIVE_LEVEL": {"type": "integer", "default": 1}}}
JSON
    plugin testuse on_Crawl__20_testuse.sh <<'SH'
#!/bin/sh
env >crawl.txt
SH
    plugin testuse on_Snapshot__20_testuse.sh <<'SH'
#!/bin/sh
env >page.txt
SH
}

# Requests of older hooks for missing programs, and a plugin that lists them in a file.
asking_plugins() {
    plugin testask on_Crawl__10_testask.sh <<'SH'
#!/bin/sh
cat <<RECORDS
{"type": "BinaryRequest", "name": "test-missing", "binproviders": "env,apt"}
{"type": "Binary", "name": "test-elsewhere", "binproviders": "pip"}
{"type": "BinaryRequest", "name": "wget", "binproviders": "env"}
{"type": "BinaryRequest", "name": "x; reboot", "binproviders": "apt"}
RECORDS
SH
    plugin testask on_Snapshot__20_testask.sh <<'SH'
#!/bin/sh
echo asked >asked.txt
SH
    plugin testlists </dev/null
    in_capsule sh -c "cat >$plugins/testlists/binaries.jsonl" <<'RECORDS'
# of an older plugin
{"type": "Binary", "name": "test-listed", "binproviders": "env,apt"}
RECORDS
}

port=$((14910 + release_number))

sonic_plugin() {
    sed "s/PORT/$port/" <<'SH' | plugin testsonic on_CrawlSetup__55_testsonic.sh
#!/bin/sh
mkdir -p ../sonic
echo configured >../sonic/config.cfg
printf '{"type": "SonicDaemonStartEvent", "worker_name": "worker_sonic", "url": "tcp://127.0.0.1:PORT", "host": "127.0.0.1", '
printf '"port": PORT, "config_path": "%s", "output_dir": "%s"}\n' "$CRAWL_DIR/sonic/config.cfg" "$CRAWL_DIR/sonic"
SH
    sed "s/PORT/$port/" <<'SH' | plugin testsonic on_Snapshot__91_testsonic.sh
#!/usr/bin/python3
import socket, time
deadline = time.monotonic() + 10
while True:
    try:
        greeting = socket.create_connection(("127.0.0.1", PORT), 5).recv(99)
        break
    except ConnectionRefusedError:
        if time.monotonic() > deadline:
            raise
open("greeting.txt", "wb").write(greeting)
SH
}

# The server on the search path: it greets clients, and records SIGTERM in its directory.
sonic_server() {
    sed "s/PORT/$port/" <<'PY' | in_capsule sh -c 'cat >/usr/local/bin/sonic && chmod 755 /usr/local/bin/sonic'
#!/usr/bin/python3
import pathlib, signal, socket, sys
config = pathlib.Path(sys.argv[sys.argv.index("-c") + 1])
assert config.read_text() == "configured\n"
def end(*_):
    (config.parent / "ended.txt").write_text("told to\n")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
server = socket.create_server(("127.0.0.1", PORT))
while True:
    stream, _ = server.accept()
    stream.sendall(b"CONNECTED <sonic-server v1.4.9>\r\n")
    stream.close()
PY
}

# crawl PLUGINS URL: runs a crawl to its end and sets $crawl.
# A model of a browser: the page exists only in the tab, and the tab removes it when the tab ends.
browsing_plugins() {
    plugin testtab on_Snapshot__10_tab.daemon.bg.sh <<'SH'
#!/bin/sh
trap 'rm -f page.txt; exit 0' TERM
echo up
while :; do sleep 0.1; done
SH
    plugin testtab on_Snapshot__30_navigate.sh <<'SH'
#!/bin/sh
echo "$2" >page.txt
echo navigated >>navigations.txt
SH
    plugin testpicture on_Snapshot__50_picture.sh <<'SH'
#!/bin/sh
[ -e ../testtab/page.txt ] || { echo '{"type":"ArchiveResult","status":"failed","output_str":"no page"}'; exit 1; }
[ -e /srv/archivist-test/light ] || { echo '{"type":"ArchiveResult","status":"failed","output_str":"too dark"}'; exit 1; }
cp ../testtab/page.txt picture.txt
SH
}

# A retry starts a new tab and opens the page in it again.
retries_what_needs_a_daemon() {
    local result='of("testpicture") | map("\(.status) \(.error)")'
    browsing_plugins
    restart
    crawl testtab,testpicture http://contract.test/picture
    assert_eq "failed too dark" "$(query "$result" list results "$crawl")" "the first try"
    in_capsule touch $signs/light
    assert_status 0 archivist retry "$crawl" --hook testpicture
    wait_for 30 is_over "$crawl"
    assert_eq "succeeded null" "$(query "$result" list results "$crawl")" "the retry"
    assert_eq 2 "$(output "$(page_of "$crawl")" testtab/navigations.txt | wc -l)" "navigations"
}

# An index belongs to the archive: hooks of its plugin write one file for all crawls, whose other hooks do not see it.
shares_an_index() {
    plugin testindex on_Snapshot__90_testindex.py <<'PY'
#!/usr/bin/python3
import os, sqlite3
connection = sqlite3.connect(os.environ["DATA_DIR"] + "/search.sqlite3")
connection.execute("CREATE TABLE IF NOT EXISTS page (id TEXT PRIMARY KEY)")
connection.execute("INSERT INTO page VALUES (?)", (os.environ["SNAPSHOT_ID"],))
connection.commit()
os.symlink(os.environ["DATA_DIR"] + "/search.sqlite3", "link")
print(os.environ["DATA_DIR"], file=open("where.txt", "w"))
PY
    in_capsule sh -c "echo '{\"x-shared-data\": true}' >$plugins/testindex/config.json"
    plugin testcurious on_Snapshot__91_testcurious.sh <<'SH'
#!/bin/sh
{ echo "$DATA_DIR"; ls /var/lib/archivist /var/lib/archivist/index; } >seen.txt 2>&1
exit 0
SH
    restart
    local index=/var/lib/archivist/index/testindex count="import sqlite3, sys; print(*sqlite3.connect(sys.argv[1]).execute('SELECT count(*) FROM page').fetchone())"
    crawl testindex,testcurious http://contract.test/first
    crawl testindex,testcurious http://contract.test/second
    assert_eq "testcurious=succeeded testindex=succeeded" "$(query 'map("\(.plugin)=\(.status)") | sort' list results "$crawl")" "results"
    assert_eq 2 "$(in_capsule python3 -c "$count" $index/search.sqlite3)" "pages in the index"
    assert_eq "archivist-index archivist-hook 640" "$(in_capsule stat -c '%U %G %a' $index/search.sqlite3)" "whose the index is"
    assert_eq "$index" "$(output "$(page_of "$crawl")" testindex/where.txt)" "DATA_DIR of the plugin"
    [[ $(output "$(page_of "$crawl")" testcurious/seen.txt) != *testindex* ]] || fail "another hook sees the index"
    in_capsule setpriv --reuid archivist-hook-1 --regid archivist-hook --clear-groups ls $index 2>/dev/null && fail "a hook without a sandbox sees the index"

    printf '[Archive]\nSharedIndex=no\n' | in_capsule sh -c "cat >${drop_in%/*}/91-test.conf"
    restart
    crawl testindex http://contract.test/own
    assert_eq "$(query '.[0].directory' list crawls "$crawl")" "$(output "$(page_of "$crawl")" testindex/where.txt)" "DATA_DIR with SharedIndex=no"
    in_capsule rm -r "${drop_in%/*}/91-test.conf" $index
    restart
}

# A setup hook gets the first page, and may add pages.
sets_up_pages() {
    plugin testlist on_CrawlSetup__20_list.sh <<'SH'
#!/bin/sh
echo "$SNAPSHOT_ID" >id.txt
echo '{"type":"Snapshot","url":"http://contract.test/named","title":"Named"}'
SH
    restart
    # It has no hook for the pages themselves.
    assert_status 3 archivist add --wait --plugins testlist http://contract.test/list
    assert_contains "$output" "nothing was archived" "what is said of pages without hooks"
    crawl=$(query 'max_by(.id | number).id' list crawls)
    assert_eq "http://contract.test/list http://contract.test/named" \
        "$(query 'map(.url) | sort' list snapshots "$crawl")" "the pages"
    assert_eq "$(query 'min_by(.id | number).id' list snapshots "$crawl")" "$(output "$crawl" testlist/id.txt)" "the page's id"
}

crawl() {
    crawl=$(add --plugins "$1" "$2")
    wait_for 60 is_over "$crawl"
}

# A hook that failed without files before a finite background hook wrote one is retried once after that hook, while the daemons run.
tries_again_what_missed_something() {
    crawl testbrings,testmissed,testhalf,testnever,testtext,testskips,testdaemon,testlast http://contract.test/again
    assert_eq "testbrings=succeeded/1 testdaemon=succeeded/1 testhalf=failed/1 testlast=succeeded/1 testmissed=succeeded/2 testnever=failed/2 testskips=succeeded/2 testtext=succeeded/2" \
        "$(query 'map("\(.plugin)=\(.status)/\(.attempts)") | sort' list results "$crawl")" "results and attempts"
    assert_eq "testmissed testnever testtext testskips" "$(query 'sort_by(.started_at) | map(.plugin)[-4:]' \
        list runs "$crawl" --limit 0)" "the last runs, in order"
    crawl testnever,testdaemon http://contract.test/alone
    assert_eq "testdaemon=1 testnever=1" "$(query 'map("\(.plugin)=\(.attempts)") | sort' list results "$crawl")" \
        "attempts where no finite hook is"
    crawl testfew,testawaits,testnever,testlast http://contract.test/complete
    assert_eq "testawaits=1 testfew=1 testlast=1 testnever=1" "$(query 'map("\(.plugin)=\(.attempts)") | sort' list results "$crawl")" \
        "attempts where the files of the finite hook were complete before"
}

# Finite hooks in Python that print at their end delay no other hook, and a daemon in Python is ready at its first line.
waits_for_no_finite_hook() {
    local n spread
    for n in 1 2 3 4 5 6 7 8; do
        plugin testfinite$n on_Snapshot__0${n}_testfinite$n.finite.bg.py <<'PY'
#!/usr/bin/python3
import pathlib, time
print("started")
while not pathlib.Path("../testfront/ran").exists():
    time.sleep(0.05)
PY
    done
    plugin testflush on_Snapshot__20_testflush.daemon.bg.py <<'PY'
#!/usr/bin/python3
import signal
print("ready")
signal.sigwait({signal.SIGTERM})
PY
    plugin testfront on_Snapshot__30_testfront.sh <<'SH'
#!/bin/sh
echo ran >ran
SH
    restart
    crawl "testfinite1,testfinite2,testfinite3,testfinite4,testfinite5,testfinite6,testfinite7,testfinite8,testflush,testfront" \
        http://contract.test/finite
    spread=$(query 'map(select(.plugin != null) | .started_at | seconds) | max - min' list runs "$crawl" --limit 0)
    figure "from the first start to the last, with eight finite hooks: $spread s"
    [[ $(evaluate '. < 4' <<<"$spread") == true ]] || fail "a hook waited for one in the background"
}

# What does not end when it has to is killed after its grace, and recorded so; nothing of it is left when the command returns.
kills_what_ignores_a_cancel() {
    local grace=/etc/systemd/system/archivist-hook-teststubborn-.service.d
    plugin teststubborn <<'SH'
#!/bin/sh
trap '' TERM
echo up >up.txt
while :; do sleep 0.1; done
SH
    in_capsule sh -c "mkdir -p $grace; printf '[Service]\nTimeoutStopSec=2s\n' >$grace/50-test.conf; systemctl daemon-reload"
    restart
    crawl=$(add --plugins teststubborn http://contract.test/stubborn)
    wait_for 30 has_unit "archivist-hook-teststubborn-s*.service"
    wait_for 10 output "$(page_of "$crawl")" teststubborn/up.txt >/dev/null
    assert_status 0 archivist cancel --wait "$crawl"
    assert_eq inactive "$(unit_property "archivist-hook-teststubborn-$(page_of "$crawl")" ActiveState | sed s/failed/inactive/)" "its unit after cancel --wait"
    assert_eq killed "$(query 'of("teststubborn") | map(.outcome.kind)' list runs "$crawl")" "its outcome"
    in_capsule sh -c "rm -r $grace; systemctl daemon-reload"
}

# The grace of a daemon is the rest of its plugin's time limit, here more than 15 seconds. Other cases run meanwhile.
starts_a_daemon_that_ends_slowly() {
    plugin testslow on_Snapshot__10_testslow.daemon.bg.sh <<'SH'
#!/bin/sh
trap 'sleep 17; echo saved >saved.txt; exit 0' TERM
echo ready
while :; do sleep 0.1; done
SH
    schema testslow <<<'{"properties": {"TESTSLOW_TIMEOUT": {"type": "integer", "default": 40}}}'
    plugin testfast on_Snapshot__20_testfast.sh <<'SH'
#!/bin/sh
echo fast >fast.txt
SH
    restart
    slow=$(add --plugins testslow,testfast http://contract.test/slow)
    keep slow
}

a_daemon_that_ended_slowly_has_its_result() {
    needs starts_a_daemon_that_ends_slowly
    wait_for 40 is_over "$slow"
    assert_eq saved "$(output "$(page_of "$slow")" testslow/saved.txt)" "what it saved after SIGTERM"
    assert_eq succeeded "$(query 'of("testslow") | only.status' list results "$slow")" "its result"
}

# However long the time limit of its plugin is, a daemon has no more than StopTimeoutSec=.
no_grace_is_longer_than_the_administrator_allows() {
    plugin teststuck on_Snapshot__10_teststuck.daemon.bg.sh <<'SH'
#!/bin/sh
trap '' TERM
echo ready
while :; do sleep 0.1; done
SH
    schema teststuck <<<'{"properties": {"TESTSTUCK_TIMEOUT": {"type": "integer", "default": 60}}}'
    printf '[Hooks]\nStopTimeoutSec=2s\n' | in_capsule sh -c "cat >${drop_in%/*}/91-test.conf"
    restart
    crawl teststuck,testfast http://contract.test/stuck
    assert_eq "signal true" "$(query 'of("teststuck") | only | [.outcome.kind, ((.ended_at | seconds) - (.started_at | seconds) < 10)]' \
        list runs "$crawl" --limit 0)" "its end"
    in_capsule rm "${drop_in%/*}/91-test.conf"
    restart
}

# When only daemons run, each may end by itself within the time limit of its plugin.
attends_to_daemons() {
    local page
    plugin testbrief on_Snapshot__10_testbrief.daemon.bg.sh <<'SH'
#!/bin/sh
echo ready
trap 'echo told >told.txt; exit 0' TERM
sleep 1 & wait $!
echo done >done.txt
SH
    plugin teststays on_Snapshot__11_teststays.daemon.bg.sh <<'SH'
#!/bin/sh
echo ready
trap 'echo told >told.txt; echo "{\"type\": \"ArchiveResult\", \"status\": \"succeeded\", \"output_str\": \"as told\"}"; exit 0' TERM
while :; do sleep 0.1; done
SH
    schema teststays <<<'{"properties": {"TESTSTAYS_TIMEOUT": {"type": "integer", "default": 4}}}'
    restart
    crawl testbrief,teststays http://contract.test/daemons
    page=$(page_of "$crawl")
    assert_eq "done" "$(output "$page" testbrief/done.txt)" "what ended by itself"
    assert_eq told "$(output "$page" teststays/told.txt)" "what did not"
    assert_eq "testbrief=succeeded:testbrief/done.txt teststays=succeeded:as told" \
        "$(query 'map(.plugin + "=" + .status + ":" + .output) | sort' list results "$page")" "results"
    assert_eq true "$(query 'of("teststays") | only | (.ended_at | seconds) - (.started_at | seconds) | 3.5 <= . and . < 20' list runs "$crawl" --limit 0)" "its time"
}

# The output of failed attempts is kept until an attempt does not fail.
keeps_what_was_printed() {
    local page
    plugin testtries on_Snapshot__10_testtries.sh <<'SH'
#!/bin/sh
tries=$(($(cat tries.txt 2>/dev/null || echo 0) + 1))
echo $tries >tries.txt
echo "try $tries"
[ $tries -ge 3 ]
SH
    restart
    crawl testtries http://contract.test/tries
    page=$(page_of "$crawl")
    archivist retry "$page" >/dev/null
    wait_for 60 is_over "$crawl"
    assert_eq "try 2 try 1" "$(output "$page" testtries/stdout.log) $(output "$page" testtries/stdout.log.1)" "output of both"
    archivist retry "$page" >/dev/null
    wait_for 60 is_over "$crawl"
    assert_eq "try 3" "$(output "$page" testtries/stdout.log)" "output of the last"
    assert_eq "stdout.log tries.txt" "$(in_capsule sh -c 'cd "$1" && echo *' sh "$(query '.[0].directory' list snapshots "$page")/testtries")" "files"
}

# Files of a hook are not executable after its end, and a retry of the hook can write them again.
# As the readable copies of abx-plugins have their pictures. A copy by `run --dir` has them, too, and so has a restored page.
keeps_links_within_a_page() {
    local directory seen
    plugin testimage on_Snapshot__20_testimage.sh <<'SH'
#!/bin/sh
mkdir host && echo picture >host/i.png
SH
    plugin testreadable on_Snapshot__60_testreadable.sh <<'SH'
#!/bin/sh
mkdir -p images/host
ln -s ../../../testimage/host/i.png images/host/i.png
ln -s "$SNAP_DIR/testimage/host/i.png" absolute
ln -s ../testreadable/loop loop
ln -s ../.stored.json hidden
ln -s ../../other outside
echo "<img src=./images/host/i.png>" >content.html
SH
    restart
    seen="absolute ../testimage/host/i.png images/host/i.png ../../../testimage/host/i.png loop ../testreadable/loop"
    crawl testimage,testreadable http://contract.test/links
    directory=$(query '.[0].directory' list snapshots "$(page_of "$crawl")")
    assert_eq "$seen" "$(links_of "$directory/testreadable")" "links"
    assert_eq picture "$(in_capsule cat "$directory/testreadable/images/host/i.png")" "the picture"
    assert_eq "../../other ../.stored.json" "$(in_capsule cat "$directory"/testreadable/{outside,hidden}.broken-symlink.txt | xargs)" "links that leave"
    assert_status 0 archivist run --dir /srv/links --plugins testimage,testreadable http://contract.test/copy
    # The link to itself leads to no file.
    assert_eq "${seen% loop *}" "$(links_of /srv/links/testreadable)" "links of the copy"
    assert_eq picture "$(in_capsule cat /srv/links/testreadable/images/host/i.png)" "the picture of the copy"
    assert_status 0 archivist backup /srv/links-backup
    assert_status 0 archivist delete --yes "$crawl"
    in_capsule rm -r /srv/links /srv/links-backup
}

links_of() { in_capsule find "$1" -type l -printf '%P %l\n' | sort | xargs; }

takes_execute_bits_off() {
    local page status
    plugin testleaves <<'SH'
#!/bin/sh
set -e
mkdir -p sub
echo "echo run" >sub/run.sh
cp sub/run.sh own.sh
chmod 755 sub/run.sh
chmod 700 own.sh
[ -e again ] || { touch again; exit 1; }
SH
    restart
    crawl testleaves http://contract.test/leaves
    page=$(page_of "$crawl")
    for status in failed succeeded; do
        assert_eq "$status" "$(query 'map(.status)' list results "$page")" "the hook"
        assert_eq "own.sh 640 sub/run.sh 644" "$(in_capsule sh -c 'cd "$1" && stat -c "%n %a" own.sh sub/run.sh' sh \
            "$(query '.[0].directory' list snapshots "$page")/testleaves" | xargs)" "what it left"
        [[ $status == succeeded ]] || archivist retry "$page" >/dev/null
        wait_for 60 is_over "$crawl"
    done
}

# The result of a hook that failed without a reason has the last lines of its standard error; the journal has all of them.
tells_what_failed_hooks_wrote() {
    local page
    plugin testwails <<'SH'
#!/bin/sh
for n in 1 2 3 4 5 6; do echo "line $n" >&2; done
printf '\n\033[31mno end' >&2
exit 4
SH
    plugin testsays <<'SH'
#!/bin/sh
echo noise >&2
echo '{"type": "ArchiveResult", "status": "failed", "output_str": "no such page"}'
exit 1
SH
    plugin testmumbles <<'SH'
#!/bin/sh
echo "as it is" >&2
echo '{"type": "ArchiveResult", "status": "failed"}'
SH
    plugin testdies <<'SH'
#!/bin/sh
echo "at the end" >&2
kill -SEGV $$
SH
    plugin testmute <<'SH'
#!/bin/sh
exit 3
SH
    restart
    crawl testwails,testsays,testmumbles,testdies,testmute http://contract.test/wails
    page=$(page_of "$crawl")
    why() { query "of(\"$1\") | only.error" list results "$page"; }
    assert_eq $'exit code 4: line 3\nline 4\nline 5\nline 6\n\e[31mno end' "$(why testwails)" "what the last lines say"
    assert_eq "no such page" "$(why testsays)" "what says it in its record"
    assert_eq "as it is" "$(why testmumbles)" "what says in its record that it failed and not why"
    assert_eq "ended by SIGSEGV: at the end" "$(why testdies)" "what crashed"
    assert_eq "exit code 3" "$(why testmute)" "what wrote nothing"
    assert_eq true "$(output "$page" index.jsonl |
        gojq --slurp 'any(.[]; .type == "ArchiveResult" and (.error // "" | contains("line 6")))')" "index.jsonl"
    assert_contains "$(archivist why "$page")" "failed: exit code 4: line 3" "why of the page"
    run=$(query 'of("testwails") | only.id' list runs "$page")
    assert_contains "$(archivist why "$run")" "$run has ended" "why of a run"
    assert_contains "$(archivist why "$run")" "failed: exit code 4: line 3" "why of a run"
    [[ $(archivist why "$page"; archivist show "$page") != *$'\e[31m'* ]] || fail "what a hook wrote reaches the terminal as it is"
}

# The end of the standard error of a failed hook is a file of the worker next to the files of the hook, until a retry does not fail.
keeps_what_failed_hooks_wrote() {
    needs tells_what_failed_hooks_wrote
    local page directory kept name=on_Snapshot__20_testkeeps.stderr.log
    in_capsule rm -rf $signs/mended $signs/copy
    # It plants a directory in the place of the file, writes more than is kept, and leaves output.
    plugin testkeeps <<SH
#!/bin/sh
echo output >own.txt
[ ! -e $signs/mended ] || { echo noise >&2; exit 0; }
mkdir $name
seq -f 'line %06.0f of what the hook has to say, which is long enough for a file that is full: $(printf %080d 0)' 400 >&2
echo '{"type": "ArchiveResult", "status": "failed", "error": "stated"}'
exit 1
SH
    plugin testgood <<'SH'
#!/bin/sh
echo noise >&2
echo output >own.txt
SH
    restart
    assert_status 3 archivist run --plugins testkeeps,testgood,testmute --dir $signs/copy http://contract.test/keeps
    crawl=$(query '.[0].id' list crawls)
    page=$(page_of "$crawl")
    directory=$(query '.[0].directory' list snapshots "$page")
    kept=$directory/testkeeps/$name
    assert_eq "regular file 65536 archivist 640" "$(in_capsule stat -c '%F %s %U %a' "$kept")" "the file"
    assert_eq "line 000400 of what the hook has to say, which is long enough for a file that is full: $(printf %080d 0)" "$(in_capsule tail -n 1 "$kept")" "its end"
    assert_eq "$kept" "$(in_capsule find "$directory" -name '*stderr*')" "files of hooks that did not fail, or wrote nothing"
    in_capsule cmp "$kept" "$signs/copy/testkeeps/$name" || fail "the copy of the page lacks it"
    assert_eq "own.txt" "$(query 'of("testkeeps") | only.files | map(.path)' list results "$page")" "the output of the hook"
    assert_eq stated "$(query 'of("testkeeps") | only.error' list results "$page")" "the reason of the hook"
    for verb in show why logs; do assert_contains "$(archivist $verb "$page" 2>&1)" "$kept" "$verb"; done
    assert_contains "$(archivist show "$(query 'of("testkeeps") | only.id' list runs "$page")")" "$kept" "show of a run"
    assert_eq "$kept" "$(query '.snapshot.runs | map(.stderr // empty)' show "$page")" "show --json"
    in_capsule touch $signs/mended
    archivist retry "$page" >/dev/null
    wait_for 60 has_succeeded "$page" testkeeps
    wait_for 60 is_over "$crawl"
    assert_nothing "files after a retry that succeeded" in_capsule find "$directory" -name '*stderr*'
    [[ $(archivist show "$page") != *stderr.log* ]] || fail "show names a file that is gone"
}

# A hook that writes more lines than journald would take, and more bytes than the journal gets, keeps its last ones.
keeps_the_end_of_a_flood() {
    needs keeps_what_failed_hooks_wrote
    local directory flood='seq -f "line %07.0f of a flood of lines" 100000; echo "error: the last line"'
    plugin testfloods <<SH
#!/bin/sh
{ $flood; } >&2
exit 4
SH
    restart
    crawl=$(add --plugins testfloods http://contract.test/flood)
    wait_for 120 is_over "$crawl"
    page=$(page_of "$crawl")
    directory=$(query '.[0].directory' list snapshots "$page")
    in_capsule sh -c "{ $flood; } | tail -c 65536 | cmp - $directory/testfloods/on_Snapshot__20_testfloods.stderr.log" ||
        fail "the file has other lines: $(in_capsule sh -c "head -n 3 $directory/testfloods/*.stderr.log; tail -n 3 $directory/testfloods/*.stderr.log")"
    assert_contains "$(archivist why "$page")" "error: the last line" "the reason"
}

has_succeeded() { [[ $(query "of(\"$2\") | only.status" list results "$1") == succeeded ]]; }

# journald reads what the hooks wrote when they and their units are gone: the lines have only the name of the unit.
tells_it_if_the_journal_is_late() {
    local page hook said
    plugin testlate <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/late ]; do sleep 0.1; done
echo "the last words" >&2
exit 4
SH
    plugin testlatesays <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/late ]; do sleep 0.1; done
echo "the quiet words" >&2
echo '{"type": "ArchiveResult", "status": "failed"}'
SH
    restart
    for hook in testlate testlatesays; do
        in_capsule rm -f $signs/late
        crawl=$(add --plugins "$hook" http://contract.test/late)
        page=$(page_of "$crawl")
        wait_for 60 has_unit "archivist-hook-$hook-$page.service"
        # Workers and orchestrator, whose messages wait for journald, have none for now.
        signal_journal STOP
        in_capsule touch $signs/late
        wait_for 60 has_released "$hook" "$page"
        signal_journal CONT
        wait_for 60 is_over "$crawl"
        said=$(query 'map(.error) | only' list results "$page")
        assert_contains "$said" "words" "the result of $hook"
        assert_contains "$(archivist logs "$page")" "words" "the log of the page of $hook"
        assert_contains "$(archivist logs "$page" --hook "$hook")" "words" "the log of $hook"
    done
}

signal_journal() { in_capsule systemctl kill --kill-whom=main --signal="$1" systemd-journald.service; }

# has_released HOOK PAGE: whether the hook has run and systemd has forgotten its unit.
has_released() {
    [[ $(query "of(\"$1\") | length" list runs "$2") == 1 ]] &&
        [[ $(query "of(\"$1\") | only.ended_at != null" list runs "$2") == true ]] &&
        [[ $(unit_property "archivist-hook-$1-$2.service" LoadState) == not-found ]]
}

# output ID PATH: prints a file of a crawl or page.
output() { in_capsule cat "$(query '.[0].directory' list "$([[ $1 == c* ]] && echo crawls || echo snapshots)" "$1")/$2"; }

page_of() { query '.[0].id' list snapshots "$1"; }

sealed() { query '.[0].snapshots.sealed' list crawls "$1"; }

# variable NAME: prints a variable of the environment on stdin.
variable() { sed -n "s/^$1=//p"; }

# Machine records are settings for later hooks; settings of the user win, and settings such as PATH are refused.
passes_settings_on() {
    local seen
    crawl=$(archivist add --json --plugins testderive,testuse --set TESTDERIVE_CHOSEN=by-user http://contract.test/1 http://contract.test/2 |
        evaluate '.crawl')
    wait_for 60 is_over "$crawl"
    assert_eq 2 "$(sealed "$crawl")" "pages of the crawl"
    for seen in "$(output "$crawl" testuse/crawl.txt)" "$(output "$(page_of "$crawl")" testuse/page.txt)"; do
        assert_eq /opt/derived "$(variable TESTDERIVE_BINARY <<<"$seen")" "a setting that a hook derived"
        assert_eq "" "$(variable TESTDERIVE_LEVEL <<<"$seen")" "a value of the wrong type"
        assert_eq "" "$(variable 'LD_PRELOAD\|NODE_OPTIONS' <<<"$seen")" "variables that would make another hook of it"
        [[ $(variable PATH <<<"$seen") != */tmp/evil* ]] || fail "a hook set the search path of another"
        [[ $seen != *"by hook"* ]] || fail "a hook's word outranks the user's"
    done
    assert_contains "$(archivist show "$crawl")" "machine/TESTDERIVE_BINARY=/opt/derived" "where it is seen"
    assert_contains "$(journal -u $service ARCHIVIST_CRAWL_ID="${crawl#c}")" "'PATH' is ignored" "the refusal"
    crawl testuse http://contract.test/3
    assert_eq "" "$(output "$(page_of "$crawl")" testuse/page.txt | variable TESTDERIVE_BINARY)" "what another crawl sees of it"
}

believes_no_hook_about_programs() {
    assert_eq "/usr/bin/wget env false {}" "$(query 'map(select(.name == "wget")) | only | [.abspath, .provider, .version == "6.6.6", field("env")]' plugins --binaries)" "what is known of wget"
}

# A program that a hook requests is not installed; `archivist why` prints the command that installs it.
names_what_hooks_ask_for() {
    local why
    crawl testask http://contract.test/ask
    assert_eq 1 "$(sealed "$crawl")" "pages of the crawl"
    why=$(archivist why "$crawl")
    assert_contains "$why" "requested the program 'test-missing', which is not installed: apt install test-missing" "why of the crawl"
    assert_contains "$why" "'test-elsewhere', which is not installed: install it, or set the path" "what nobody vouches for"
    assert_eq 2 "$(grep -c 'requested the program' <<<"$why")" "programs that are asked for"
    assert_contains "$(archivist why "$(page_of "$crawl")")" "'test-missing'" "why of a page"
    assert_contains "$(archivist show "$crawl")" "test-missing: apt install test-missing" "show"
    in_capsule install -m 755 /bin/true /usr/local/bin/test-missing
    [[ $(archivist why "$crawl") != *test-missing* ]] || fail "it is there by now"
    in_capsule rm /usr/local/bin/test-missing

    crawl testlists http://contract.test/lists
    assert_contains "$(query 'map(.status + ": " + .error)' list results "$crawl")" "apt install test-listed" \
        "why a plugin with a list is not run"
    assert_eq "apt install test-listed" "$(query 'map(select(.name == "test-listed")) | only.missing' plugins --binaries)" "its program"
}

# The server that a hook requests is a unit of the crawl: it runs before the first page and ends after the last.
runs_sonic() {
    sonic_server
    crawl testsonic http://contract.test/sonic
    assert_eq "on_CrawlSetup__55_testsonic=succeeded on_Snapshot__91_testsonic=succeeded sonic=succeeded" \
        "$(query 'map(.hook + "=" + .status) | sort' list results "$crawl")" "results"
    assert_contains "$(output "$(page_of "$crawl")" testsonic/greeting.txt)" CONNECTED "what the page's hook got"
    assert_eq "told to" "$(output "$crawl" sonic/ended.txt)" "how the server ended"
    assert_eq "archivist-hook-testsonic-sonic-$crawl.service" "$(query 'map(select(.hook == "sonic").unit)' list runs "$crawl")" "its unit"
    assert_nothing_is_left

    # If a server answers already, and hooks may reach it, no second one is started.
    in_capsule sh -c "mkdir -p /opt/sonic && echo configured >/opt/sonic/config.cfg; printf '[Hooks]\nReach=loopback\n' >${drop_in%/*}/91-test.conf"
    restart
    in_capsule systemd-run --quiet --collect --unit=test-sonic --property=Type=exec sonic -c /opt/sonic/config.cfg
    wait_for 10 in_capsule python3 -c 'import socket, sys; socket.create_connection(("127.0.0.1", int(sys.argv[1])), 1)' "$port" 2>/dev/null
    crawl testsonic http://contract.test/sonic-there
    assert_contains "$(query 'map(select(.hook == "sonic").output)' list results "$crawl")" "a server already answers at 127.0.0.1:$port" "its result"
    in_capsule sh -c "systemctl stop test-sonic.service; rm ${drop_in%/*}/91-test.conf"
    restart

    in_capsule rm /usr/local/bin/sonic
    crawl testsonic http://contract.test/sonic-missing
    assert_eq "skipped sonic is not installed; see: archivist plugins --binaries" \
        "$(query 'map(select(.hook == "sonic") | .status + " " + .error)' list results "$crawl")" "the missing server"
    assert_nothing_is_left
}

# fake_sonic: the plugin search_backend_sonic of abx-plugins in small, and a server that counts its starts.
fake_sonic() {
    sed "s/PORT/$port/" <<'SH' | plugin search_backend_sonic on_CrawlSetup__55_sonic_start.sh
#!/bin/sh
mkdir -p "$DATA_DIR/sonic"
printf 'inet = "127.0.0.1:%s"\n' PORT >"$DATA_DIR/sonic/config.cfg"
printf '{"type": "SonicDaemonStartEvent", "host": "127.0.0.1", "port": PORT, "config_path": "%s"}\n' "$DATA_DIR/sonic/config.cfg"
SH
    sed "s/PORT/$port/" <<'PY' | plugin search_backend_sonic on_Snapshot__91_index_sonic.py
#!/usr/bin/python3
import os, socket, time
stream = socket.create_connection(("127.0.0.1", PORT), 5)
stream.sendall(os.environ["SNAPSHOT_ID"].encode() + b"\n")
open("greeting.txt", "wb").write(stream.recv(99))
while os.path.exists("/srv/archivist-test/hold"):
    time.sleep(0.1)
PY
    in_capsule sh -c 'cat >/usr/local/bin/sonic && chmod 755 /usr/local/bin/sonic' <<'PY'
#!/usr/bin/python3
import os, pathlib, signal, socket, sys, threading
top = pathlib.Path(sys.argv[sys.argv.index("-c") + 1]).parent
port = int((top / "config.cfg").read_text().split(":")[1].strip('"\n'))
with open(top / "starts", "a") as starts:
    print(os.getpid(), file=starts)
signal.signal(signal.SIGTERM, lambda *_: ((top / "ended").write_text("written"), os._exit(0)))
def serve(stream):
    page = stream.makefile().readline()
    with open(top / "pages", "a") as pages:
        pages.write(page)
    stream.sendall(b"CONNECTED")
server = socket.create_server(("127.0.0.1", port))
while True:
    threading.Thread(target=serve, args=[server.accept()[0]], daemon=True).start()
PY
}

# The sonic server belongs to the archive: two crawls use it at a time, and it survives both and the orchestrator.
shares_a_sonic_server() {
    local index=/var/lib/archivist/index/search_backend_sonic first second
    fake_sonic
    restart
    assert_eq "active inactive" "$(in_capsule systemctl is-active archivist-sonic.socket archivist-sonic.service | xargs)" "before the first crawl"
    in_capsule touch $signs/hold
    first=$(add --plugins search_backend_sonic http://contract.test/sonic-first)
    wait_for 30 has_unit "archivist-hook-search_backend_sonic-index_sonic-s*.service"
    second=$(add --plugins search_backend_sonic http://contract.test/sonic-second)
    wait_for 30 in_capsule sh -c "[ \$(wc -l <$index/sonic/pages) -eq 2 ]"
    in_capsule systemctl kill --signal=KILL $service
    assert_eq active "$(in_capsule systemctl is-active archivist-sonic.service)" "the server without orchestrator"
    in_capsule rm $signs/hold
    wait_for 60 is_over "$first"
    wait_for 60 is_over "$second"
    assert_eq "index_sonic=succeeded sonic=noresults sonic_start=succeeded" \
        "$(query 'map("\(.hook | sub(".*__[0-9]+_"; ""))=\(.status)") | sort' list results "$second")" "results"
    assert_eq "CONNECTED CONNECTED" "$(output "$(page_of "$first")" search_backend_sonic/greeting.txt) $(output "$(page_of "$second")" search_backend_sonic/greeting.txt)" "what the pages got"
    assert_eq "1" "$(in_capsule sh -c "wc -l <$index/sonic/starts")" "starts of the server"
    assert_eq "$(page_of "$first") $(page_of "$second")" "$(in_capsule sort -V $index/sonic/pages | xargs)" "pages in its index"
    assert_eq "archivist-index /archivist.slice/archivist-sonic.service" "$(in_capsule systemctl show --value --property=User --property=ControlGroup archivist-sonic.service | sort -r | xargs)" "its unit"
    in_capsule systemctl stop archivist-sonic.service
    assert_eq written "$(in_capsule cat $index/sonic/ended)" "how the server ended"
    in_capsule sh -c "rm -r $index/sonic $plugins/search_backend_sonic"
    assert_nothing_is_left
}

# A plugin whose hooks expect a server and request none, as since release 1.12 of abx-plugins. SONIC_BINARY=PATH of the machine is a
# real sonic for the capsule; without it, a stand-in speaks its protocol. Two crawls and a restart of the server: one index.
a_plugin_that_requests_no_server_gets_that_of_the_archive() {
    local index=/var/lib/archivist/index/search_backend_sonic first second found
    in_capsule rm -rf /opt/test-sonic
    capsule cp "$ROOT/tests/capsule/sonic" "$CAPSULE:/opt/test-sonic"
    capsule cp "${SONIC_BINARY:-$ROOT/tests/capsule/sonic/server.py}" "$CAPSULE:/usr/local/bin/sonic"
    sed "s/1491/$port/" "$ROOT/tests/capsule/sonic/config.json" | plugin_file config.json
    plugin_file on_Snapshot__91_index_sonic.py <"$ROOT/tests/capsule/sonic/on_Snapshot__91_index_sonic.py"
    in_capsule chmod 755 /usr/local/bin/sonic $plugins/search_backend_sonic/on_Snapshot__91_index_sonic.py
    restart
    first=$(add --plugins search_backend_sonic http://contract.test/tulip http://contract.test/rose)
    wait_for 60 is_over "$first"
    assert_eq "on_Snapshot__91_index_sonic=succeeded on_Snapshot__91_index_sonic=succeeded sonic=noresults" \
        "$(query 'map("\(.hook)=\(.status)") | sort' list results "$first")" "results"
    assert_eq "CONNECTED STARTED OK" "$(output "$(page_of "$first")" search_backend_sonic/answers.txt | xargs)" "what the server answered"
    assert_eq active "$(in_capsule systemctl is-active archivist-sonic.service)" "the server after the crawl"
    in_capsule systemctl stop archivist-sonic.service
    second=$(add --plugins search_backend_sonic http://contract.test/tulip)
    wait_for 60 is_over "$second"
    found=$(in_capsule python3 /opt/test-sonic/query.py $index/server.socket secret tulip)
    assert_eq "$(query 'map(select(.url | endswith("tulip")).id) | sort' list snapshots "$first") $(page_of "$second")" "$found" "pages with the word"
    figure "sonic: ${SONIC_BINARY:-a stand-in}"
    in_capsule sh -c "systemctl stop archivist-sonic.service; rm -r /opt/test-sonic $index/sonic $plugins/search_backend_sonic"
    assert_nothing_is_left
}

# plugin_file NAME: stdin is a file of the plugin.
plugin_file() { in_capsule sh -c "mkdir -p $plugins/search_backend_sonic && cat >$plugins/search_backend_sonic/$1"; }

cases starts_a_daemon_that_ends_slowly waits_for_no_finite_hook kills_what_ignores_a_cancel tries_again_what_missed_something passes_settings_on retries_what_needs_a_daemon sets_up_pages shares_an_index \
    a_daemon_that_ended_slowly_has_its_result no_grace_is_longer_than_the_administrator_allows \
    attends_to_daemons keeps_what_was_printed tells_what_failed_hooks_wrote keeps_what_failed_hooks_wrote keeps_the_end_of_a_flood tells_it_if_the_journal_is_late takes_execute_bits_off keeps_links_within_a_page \
    believes_no_hook_about_programs names_what_hooks_ask_for runs_sonic shares_a_sonic_server \
    a_plugin_that_requests_no_server_gets_that_of_the_archive
