#!/bin/bash
# Hooks, members of the group and other users that send excessive input: little of it is stored, and other callers do not wait.
# The figures are the times of `Status` for another caller meanwhile: calls, median, maximum in ms.
# In a short run early.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

state=/var/lib/archivist
tools=/opt/bounds
# Limit in ms. An idle machine needs a tenth of a second; in a short run, other tests have the processors, too.
WORST=1000
[[ $EXTENT == full ]] || WORST=5000

clean() {
    in_capsule sh -c "touch $signs/stop $signs/go; rm -rf $tools; userdel member; userdel stranger" 2>/dev/null || true
    unmount $state/archive
    forget_configuration
}

prepare() {
    in_capsule mkdir -p $tools $signs
    capsule cp "$(dirname "$0")/bounds/attack.py" "$CAPSULE:$tools/attack.py"
    capsule cp "$ROOT/tests/faults/hostile.py" "$CAPSULE:$tools/hostile.py"
    in_capsule sh -c "useradd --groups archivist member; useradd stranger"
    plugin testtags <<'SH'
#!/usr/bin/python3
import sys
for first in range(0, 1_500_000, 10_000):
    sys.stdout.write("".join('{"type":"Tag","name":%d}\n' % n for n in range(first, first + 10_000)))
SH
    plugin testtitles <<'SH'
#!/usr/bin/python3
with open("urls.jsonl", "w") as file:
    for n in range(40):
        file.write('{"url": "http://title.test/%d", "title": "%s"}\n' % (n, "t" * 1_000_000))
SH
    plugin testlinks <<'SH'
#!/usr/bin/python3
print("\n".join('{"type": "Snapshot", "url": "http://links.test/%060d"}' % n for n in range(25_000)))
SH
    plugin testescapes <<'SH'
#!/usr/bin/python3
import sys
print('{"type": "Tag", "name": "tag\\u009b31m\\u202egnp"}')
print('{"type": "ArchiveResult", "status": "failed", "output_str": "out\\u009b2J\\u2066", "error": "err\\u009b2J\\u202e\\u0085"}')
sys.stderr.buffer.write("log\u009b2J\u001b[31m\n".encode())
SH
    plugin testwaits <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
SH
    plugin testlogs <<'SH'
#!/usr/bin/python3
import os, sys, time
kind, end = os.environ["TESTLOGS_KIND"], time.monotonic() + 20
line = (lambda: os.urandom(47_000).replace(b"\n", b"x").replace(b"\0", b"x")) if kind == "long" else (lambda: b"x")
while time.monotonic() < end:
    sys.stderr.buffer.write(line() + b"\n")
    # journald also limits the number of lines.
    time.sleep(0.002)
sys.exit("the reason")
SH
    in_capsule sh -c "echo '{\"type\": \"object\", \"properties\": {\"TESTLOGS_KIND\": {\"type\": \"string\"}}}' >$plugins/testlogs/config.json"
    # Tries to open the memory and the descriptors of the relay of its log, and says something when it is stopped.
    plugin testrelay on_Snapshot__20_testrelay.daemon.bg.py <<'PY'
#!/usr/bin/python3
import glob, signal, sys, time
seen, opened = [], []
for process in glob.glob("/proc/[0-9]*"):
    try:
        if b"--relay" not in open(process + "/cmdline", "rb").read():
            continue
        seen.append(process)
        for name in ("mem", "environ", "fd/2"):
            try:
                open(process + "/" + name, "r+b" if name == "mem" else "rb")
                opened.append(name)
            except OSError:
                pass
    except OSError:
        pass
def ended(*_):
    print("relays: %d, opened: %s" % (len(seen), opened), file=sys.stderr)
    sys.exit(0)
signal.signal(signal.SIGTERM, ended)
print("ready", flush=True)
while True:
    time.sleep(1)
PY
    plugin testfills <<'SH'
#!/bin/sh
for n in $(seq 100); do head -c 4M /dev/zero >full$n || exit 1; sleep 0.2; done
SH
    plugin testbefore on_Snapshot__05_testbefore.sh <<'SH'
#!/bin/sh
echo before >../testfills/before
SH
    plugin testbeside on_Snapshot__06_testbeside.finite.bg.sh <<'SH'
#!/bin/sh
sleep 2
echo beside >file
SH
    plugin testafter on_Snapshot__30_testafter.sh <<'SH'
#!/bin/sh
echo fine >file
SH
    plugin testlarge <<'SH'
#!/usr/bin/python3
import os, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
with open("file", "wb") as file:
    try:
        os.ftruncate(file.fileno(), (4 << 30) + 1)
        said = "no limit"
    except OSError as error:
        said = error.strerror
print('{"type": "ArchiveResult", "status": "succeeded", "output_str": "%s"}' % said)
SH
    configure </dev/null
}

attack() { in_capsule python3 $tools/attack.py "$@"; }

as_member() { in_capsule setpriv --reuid member --regid member --init-groups "$@"; }

attack_as_member() { as_member python3 $tools/attack.py "$@"; }

resident() { in_capsule sed -n 's/^VmRSS:[[:space:]]*\([0-9]*\) kB/\1/p' "/proc/$(unit_property $service MainPID)/status"; }

# measured COMMAND…: runs it while another caller asks for the status; sets $said to its output, and $figures.
measured() {
    in_capsule rm -f $signs/stop
    attack meter $signs/stop >"$work/figures" &
    local meter=$!
    said=$("$@")
    in_capsule touch $signs/stop
    wait $meter || fail "$*: the other caller got no answer"
    figures=$(cat "$work/figures")
    (($(awk '{ print int($3) }' <<<"$figures") < WORST)) || fail "$*: the other caller waited: $figures ms"
}

# archived PLUGIN [OPTION…]: prints the crawl of one page with this plugin, which is over.
archived() {
    local plugins=$1 crawl
    shift
    crawl=$(add --plugins "$plugins" "$@" "http://${plugins%%,*}.test/")
    wait_for 60 is_over "$crawl"
    echo "$crawl"
}

error_of() { query "of(\"$2\") | map(.error // \"\")" list results "$1"; }

a_flood_of_tags_is_cut_off() {
    measured archived testtags
    assert_eq "64 1" "$(query '[(.[0].tags | length), .[0].attempts]' list snapshots "$said")" "tags of the page, and its attempts"
    assert_contains "$(error_of "$said" testtags)" "too much for one report, left out: 1499936 tags" "the result"
    figure "1.5 million tags: 64 are kept; status: $figures"
}

titles_of_a_megabyte_do_not_end_the_worker() {
    local crawl
    crawl=$(archived testtitles --depth 1 --set CRAWL_MAX_URLS=1)
    assert_eq "succeeded 1" "$(query 'of("testtitles") | [only.status, only.attempts]' list results "$crawl")" "result, and its attempts"
    assert_eq 4099 "$(query 'map(.title // "" | utf8bytelength) | max' list snapshots "$crawl")" "longest title"
    figure "40 titles of a megabyte: cut, and the page is done at once"
}

many_links_are_queued_in_pieces() {
    measured archived testlinks --depth 1 --set CRAWL_MAX_URLS=1
    assert_eq 20001 "$(query '.[0].snapshots | add' list crawls "$said")" "pages of the crawl"
    assert_contains "$(error_of "$said" testlinks)" "left out: 5000 pages" "the result"
    figure "25,000 links: 20,000 are queued and left out; status: $figures"
    local crawl=$said
    measured archivist retry "$crawl"
    wait_for 60 is_over "$crawl"
    assert_eq 20000 "$(query '.[0].snapshots.cancelled' list crawls "$crawl")" "pages that are left out again"
    figure "20,000 pages are retried; status: $figures"
}

endless_pipes_do_not_delay_other_adds() {
    measured attack_as_member pipes 600
    # The bus refuses some calls while many are queued.
    assert_contains "$said" "org.freedesktop.DBus.Error.LimitsExceeded=" "what came of 600 pipes"
    assert_eq answered "$(attack small 1)" "a list of another caller after them"
    figure "600 pipes that never end: 256 wait at most; status: $figures"
}

large_lists_are_refused() {
    measured attack_as_member large 6 500
    assert_eq "org.freedesktop.DBus.Error.InvalidArgs" "$(sort -u <<<"$said")" "lists of 500 MiB"
    (($(resident) < 300000)) || fail "resident after large lists: $(resident) kB"
    figure "six lists of 500 MiB: refused, $(resident) kB resident; status: $figures"
}

a_long_list_does_not_delay_other_callers() {
    measured attack_as_member large 1 20
    assert_eq answered "$said" "a list of 20 MiB"
    archivist cancel "$(query '.[0].id' list crawls)" >/dev/null
    figure "a list of 320,000 pages: status: $figures"
}

descriptors_of_one_user_are_counted() {
    local held said
    held=$(add --plugins testwaits http://held.test/)
    said=$(attack_as_member hold "$held" 2000)
    assert_eq "512 org.freedesktop.DBus.Error.LimitsExceeded" "$said" "what came of 2000 calls"
    wait_for 10 given_back "$held"
    in_capsule touch $signs/go
    wait_for 30 is_over "$held"
    figure "2000 descriptors: 512 are given to one user, and back when they are closed"
}

given_back() { [[ $(attack_as_member hold "$1" 3) == "3 answered" ]]; }

a_long_word_is_not_quoted_back() {
    assert_eq "org.freedesktop.DBus.Error.LimitsExceeded answered" "$(attack_as_member quote 31)" "a kind of check of 31 MiB"
    figure "31 MiB in a call: refused in few words"
}

the_database_cannot_be_locked() {
    local database=$state/archivist.sqlite3
    assert_eq 600 "$(in_capsule stat -c %a $database $database-wal $database-shm | sort -u)" "modes of the database"
    ! as_member cat $database-shm >/dev/null 2>&1 || fail "a member reads the database"
    in_capsule chmod 640 $database $database-shm
    restart
    archivist status >/dev/null
    assert_eq 600 "$(in_capsule stat -c %a $database $database-wal $database-shm | sort -u)" "modes of a database that was open to others"
    figure "the database: root's alone, also after a change of its mode"
}

forged_signals_are_not_believed() {
    local pid before names
    archivist status >/dev/null
    pid=$(unit_property $service MainPID) before=$(resident)
    names=$(in_capsule busctl list --no-legend --no-pager | awk -v pid="$pid" '$2 == pid && $1 ~ /^:/ { print $1 }')
    # shellcheck disable=SC2086 # words
    measured in_capsule setpriv --reuid stranger --regid stranger --clear-groups python3 $tools/attack.py forge 4 $names
    assert_eq "$pid" "$(unit_property $service MainPID)" "process of the orchestrator"
    (($(resident) < before + 16384)) || fail "$before kB resident became $(resident) kB by $said signals"
    figure "$said forged signals: $before kB resident became $(resident) kB; status: $figures"
}

nothing_commands_a_terminal() {
    local crawl page what out=
    crawl=$(archived testescapes)
    page=$(query '.[0].id' list snapshots "$crawl")
    for what in crawls snapshots results runs; do out+=$(archivist list $what "$crawl"; archivist list $what "$crawl" --json); done
    out+=$(archivist show "$page"; archivist show --json "$page"; archivist why "$page"; archivist why --json "$page"; archivist logs "$page")
    out+=$(archivist run --plugins testescapes http://escapes.test/1 2>&1 || true)
    out+=$(archivist add --wait --plugins testescapes http://escapes.test/2 2>&1 || true)
    out+=$(archivist add --wait --json --plugins testescapes http://escapes.test/3 2>&1 || true)
    assert_contains "$out" 'err\u009b2J' "what is escaped"
    out=$(in_capsule python3 -c 'import sys, unicodedata
text = sys.stdin.buffer.read().decode()
bidi = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"
print(*sorted({"%04x" % ord(c) for c in text if c != "\n" and (unicodedata.category(c) == "Cc" or c in bidi)}))' <<<"$out")
    assert_eq "" "$out" "characters that a terminal obeys"
    figure "control and bidi characters: none of them in what any verb prints"
}

files_have_a_size() {
    local crawl
    crawl=$(archived testlarge)
    assert_eq "File too large" "$(query '.[0].output' list results "$crawl")" "a file of more than 4 GiB"
    ! checks 3M || fail "a check writes 3 MiB"
    checks 1M || fail "a check writes no 1 MiB"
    figure "files: 4 GiB for a hook, 2 MiB for a check"
}

# Whether a check may write a file of this size.
checks() {
    in_capsule systemd-run --quiet --wait --collect --unit=archivist-check-status-99 sh -c "head -c $1 /dev/zero >/tmp/file" 2>/dev/null
}

# Bytes of all journal files.
journal_bytes() { in_capsule sh -c "journalctl --sync; du -cB1 /var/log/journal /run/log/journal 2>/dev/null | tail -1 | cut -f1"; }

a_log_is_bounded_in_bytes() {
    local kind crawl before grown
    for kind in long short; do
        before=$(journal_bytes)
        crawl=$(archived testlogs --set "TESTLOGS_KIND=$kind")
        grown=$(($(journal_bytes) - before))
        assert_contains "$(error_of "$crawl" testlogs)" "the reason" "the last line of a log with $kind lines"
        [[ $kind == short ]] || assert_contains "$(archivist logs "$crawl" | grep -a archivist-hook-exec)" "the log reached its limit of 4M" "the log with $kind lines"
        # journald allocates its files in steps of 8 MiB.
        ((grown <= (4 + 8) << 20)) || fail "the journal grew by $grown bytes for $kind lines"
        figure "20 s of $kind lines: the journal grew by $((grown >> 10)) KiB"
    done
}

the_relay_of_a_log_cannot_be_opened() {
    local crawl
    crawl=$(archived testrelay,testafter)
    assert_contains "$(archivist logs "$crawl")" ", opened: []" "what a daemon says when it is stopped"
    figure "the relay of a log: seen by its hook, and not opened"
}

# Last, as it covers the archive.
the_hook_that_fills_the_disk_is_ended() {
    stop_all
    in_capsule mount -t tmpfs -o size=160m,mode=2750,uid=archivist,gid=archivist-hook tmpfs $state/archive
    # An empty archive of a machine that has archived pages is taken for one that is not mounted.
    in_capsule mkdir $state/archive/.new
    configure <<<'MinFreeSpace=120M'
    measured archived testbefore,testbeside,testfills,testafter
    assert_eq "failed succeeded" "$(query '[(of("testfills"), of("testafter"))[].status]' list results "$said")" "results"
    assert_contains "$(error_of "$said" testfills)" "limit: disk" "the result"
    assert_contains "$(error_of "$said" testfills)" "removed what it wrote: " "what became of its files"
    assert_contains "$(archivist why "$said")" "limit: disk" "why"
    local page
    page=$(query '.[0].directory' list snapshots "$said")
    assert_eq "" "$(in_capsule sh -c "ls '$page'/testfills/full*" 2>/dev/null)" "files of the hook"
    assert_eq "before beside fine" "$(in_capsule cat "$page"/testfills/before "$page"/testbeside/file "$page"/testafter/file | xargs)" \
        "files of other hooks"
    unmount $state/archive
    configure </dev/null
    figure "a hook that fills the disk: ended, and its page goes on; status: $figures"
}

cases a_flood_of_tags_is_cut_off titles_of_a_megabyte_do_not_end_the_worker many_links_are_queued_in_pieces \
    endless_pipes_do_not_delay_other_adds large_lists_are_refused a_long_list_does_not_delay_other_callers \
    descriptors_of_one_user_are_counted a_long_word_is_not_quoted_back the_database_cannot_be_locked \
    forged_signals_are_not_believed nothing_commands_a_terminal files_have_a_size \
    a_log_is_bounded_in_bytes the_relay_of_a_log_cannot_be_opened \
    the_hook_that_fills_the_disk_is_ended
