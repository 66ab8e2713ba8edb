#!/bin/bash
# F9: no space, no inodes, a read-only file system, for the data and for /tmp of hooks: the orchestrator survives, reports
# the reason, continues by itself afterwards, and records no incomplete result as a success.
# tests/capsule/60-bad-input.sh and 48-polite.sh test the answers to callers while the disk is full.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 12 100) ROUNDS=$(times 1 5) SIZE=262144
# Seconds that a hook runs: long enough that the disk is full before all pages are done, also on a slow machine.
EACH=0.6
data=/var/lib/archivist
recorded=$work/recorded tmps=$work/tmps

clean() {
    in_capsule sh -c "mountpoint -q $data/archive && umount $data/archive; rm -rf /etc/systemd/system/archivist-hook-testtmp-.service.d
        rm -f /run/filler; [ -d $data.away ] && mv $data.away $data
        systemctl daemon-reload; mountpoint -q $data && { systemctl stop archivist.slice; umount $data; } || true"
    forget_configuration
}

# Plugins that write a file of $SIZE bytes: testcare checks for errors, testcareless ignores them, testtmp uses /tmp.
writers() {
    plugin testcare <<SH
#!/bin/sh
set -e
sleep $EACH
head -c $SIZE /dev/zero >part
mv part whole
SH
    plugin testcareless <<SH
#!/bin/sh
sleep $EACH
head -c $SIZE /dev/zero >whole
echo '{"type": "ArchiveResult", "status": "succeeded"}'
SH
    plugin testtmp <<SH
#!/bin/sh
set -e
head -c $SIZE /dev/zero >/tmp/scratch
cp /tmp/scratch whole
SH
}

# on_its_own OPTION…: mounts a tmpfs as the data directory.
on_its_own() {
    stop_all
    in_capsule sh -c "mount -t tmpfs -o $1,mode=755 tmpfs $data; systemd-tmpfiles --create archivist.conf"
    restart
    pid=$(unit_property $service MainPID)
}

back() {
    assert_eq "$pid" "$(unit_property $service MainPID)" "process of the orchestrator"
    stop_all
    in_capsule umount $data
}

codes() { query '.reasons | map(.code)' why "$1"; }
status_says() { [[ $(archivist status 2>&1) == *"$1"* ]]; }
# says PATTERN: whether the status of the orchestrator matches.
says() { [[ $(unit_property $service StatusText) =~ $1 ]]; }
says_or_is_over() { says "$2" || is_over "$1"; }
some_are_done() { (($(query 'map(select(.status == "succeeded")) | length' list results "$1" --limit 0) >= $2)); }

# No hook is running.
stands() { [[ -z $(in_capsule systemctl list-units --plain --no-legend --state=running 'archivist-hook-*') ]]; }

# assert_whole CRAWL: every result is a success with a complete file.
assert_whole() {
    local partial
    finish "$1" 300
    assert_nothing "results of $1 that failed" query 'map(select(.status != "succeeded") | "\(.status) \(.error)")' list results "$1" --limit 0
    assert_eq "sealed $((PAGES * 2)) succeeded" "$(crawl_status "$1") $(query '[length, (map(.status) | unique[])]' list results "$1" --limit 0)" \
        "results of $1"
    partial=$(in_capsule sh -c "find $data/archive -path '*/testcare*/whole' ! -size ${SIZE}c | wc -l")
    assert_eq 0 "$partial" "partial results called succeeded"
    echo $((PAGES * 2)) >>"$recorded"
    assert_nothing_is_left
}

# fill_up WHAT COMMAND WORDS: runs COMMAND, which causes the shortage, during a crawl; WORDS are part of the reason.
fill_up() {
    local crawl round
    crawl=$(pages "$PAGES" "$1" testcare,testcareless)
    wait_for 60 some_are_done "$crawl" 4
    for ((round = 1; round <= ROUNDS; round++)); do
        ! is_over "$crawl" || break
        in_capsule sh -c "$2" 2>/dev/null || true
        wait_for 60 says_or_is_over "$crawl" "$3"
        ! is_over "$crawl" || fail "all was done before the machine was short: $2"
        wait_for 60 stands
        in_capsule rm -rf $data/filler
        wait_for 60 moves
    done
    assert_whole "$crawl"
}

moves() { ! says "starting nothing" && ! says "database error"; }

no_space() {
    on_its_own size=96M
    configure_space 16M
    fill_up space "dd if=/dev/zero of=$data/filler bs=64k" "MiB are free|disk is full"
    back
}

no_inodes() {
    on_its_own size=96M,nr_inodes=12000
    configure_space 1M
    fill_up inodes "mkdir $data/filler; cd $data/filler; seq 20000 | xargs touch" "free inodes"
    back
}

configure_space() {
    configure <<END
[Archive]
MinFreeSpace=$1
[Orchestrator]
RetrySec=1s
RetryMaxSec=2s
END
    pid=$(unit_property $service MainPID)
}

# The archive on a disk of its own becomes read-only: no hook is started meanwhile.
read_only_archive() {
    local crawl
    stop_all
    in_capsule sh -c "mount -t tmpfs -o size=64M tmpfs $data/archive; systemd-tmpfiles --create archivist.conf; mkdir $data/archive/.new"
    configure_space 1M
    in_capsule mount -o remount,ro $data/archive
    crawl=$(pages "$PAGES" readonly testcare,testcareless)
    wait_for 20 says "read-only"
    assert_eq pressure "$(codes "$crawl")" "why $crawl"
    assert_contains "$(archivist why "$crawl")" "the file system of the archive is read-only" "why $crawl"
    in_capsule mount -o remount,rw $data/archive
    assert_whole "$crawl"
    assert_eq 1 "$(query '.[0].attempts' list crawls "$crawl")" "attempts"
    stop_all
    in_capsule umount $data/archive
    restart
}

# The disk of another installation is mounted as the archive: nothing starts and nothing is written to it, until the right
# one is back.
archive_of_another_installation() {
    local crawl reason="belongs to another installation"
    configure_space 1M
    crawl=$(add --plugins testcare http://before.test/)
    finish "$crawl"
    assert_eq "installation-$(in_capsule cat $data/installation)" "$(in_capsule sh -c "ls $data/archive/.ids | grep installation")" \
        "the identity in the archive"
    in_capsule sh -c "mount -t tmpfs -o size=64M tmpfs $data/archive; systemd-tmpfiles --create archivist.conf
        mkdir -m 750 $data/archive/.ids; touch $data/archive/.ids/installation-$(printf 'f%.0s' {1..32})
        chown -R archivist: $data/archive/.ids"
    crawl=$(pages "$PAGES" another testcare,testcareless)
    wait_for 20 says "$reason"
    assert_eq pressure "$(codes "$crawl")" "why $crawl"
    assert_contains "$(archivist why "$crawl")" "$reason" "archivist why"
    assert_contains "$(archivist status)" "$reason" "archivist status"
    assert_contains "$(archivist doctor || true)" "to use this one from now on: rm $data/installation" "archivist doctor"
    restart
    wait_for 20 says "$reason"
    assert_nothing "files in the archive of others" in_capsule find $data/archive -mindepth 1 ! -path '*/.ids*' ! -path '*/.run*' ! -path '*/.fetched'
    in_capsule umount $data/archive
    assert_whole "$crawl"
    assert_eq "1 1" "$(query '[(map(.attempts) | unique[])]' list crawls "$crawl") $(query 'map(.attempts) | unique' list snapshots "$crawl" --limit 0)" \
        "attempts"
}

# The data directory is read-only or full when the orchestrator starts: it waits and does not fail.
unusable_at_the_start() {
    local how=$1 before=$2 after=$3 words=$4
    on_its_own size=8M
    stop_all
    in_capsule sh -c "$before"
    in_capsule systemctl start --no-block $service
    wait_for 30 says "$words"
    assert_eq activating "$(in_capsule systemctl is-active $service || true)" "state of the service, $how"
    # A mount that is read-only for a process stays so; from time to time, another process checks.
    sleep 3
    assert_eq 0 "$(unit_property $service NRestarts)" "restarts, $how"
    in_capsule sh -c "$after"
    wait_for 30 has_unit $service
    assert_status 0 archivist status
    stop_all
    in_capsule umount $data
    restart
}

# assert_tmp OPTIONS: mounts /tmp of the hooks of one plugin with OPTIONS. These fail with their own messages, other hooks succeed.
assert_tmp() {
    local crawl
    in_capsule sh -c "mkdir -p /etc/systemd/system/archivist-hook-testtmp-.service.d
        printf '[Service]\nTemporaryFileSystem=\nTemporaryFileSystem=$data:ro /tmp:%s\n' '$1' >/etc/systemd/system/archivist-hook-testtmp-.service.d/tmp.conf; systemctl daemon-reload"
    crawl=$(add --plugins testtmp,testcare "http://tmp.test/$1")
    finish "$crawl"
    assert_eq "succeeded failed" "$(query 'sort_by(.plugin) | map(.status)' list results "$crawl")" "results with /tmp $1"
    assert_contains "$(archivist logs "$crawl" 2>&1 || true)" "$2" "what the hook said"
    in_capsule sh -c "rm -r /etc/systemd/system/archivist-hook-testtmp-.service.d; systemctl daemon-reload"
    archivist retry "$crawl" >/dev/null
    finish "$crawl"
    assert_eq "2 succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$crawl")" "results when there is room in /tmp again"
    echo "$1" >>"$tmps"
}

# Without space in /run, no unit gets its input: nothing is started, and no attempt is counted.
no_space_in_run() {
    local crawl
    configure_space 1M
    in_capsule sh -c "dd if=/dev/zero of=/run/filler bs=64k; mount -o remount,size=\$(df --output=used -B1 /run | tail -n 1) /run" 2>/dev/null || true
    wait_for 20 run_is_full
    crawl=$(pages "$PAGES" run testcare,testcareless)
    wait_for 20 says "'/run/archivist' is full"
    assert_eq pressure "$(codes "$crawl")" "why $crawl"
    assert_contains "$(archivist doctor || true)" "'/run/archivist' is full" "archivist doctor"
    in_capsule sh -c "rm -f /run/filler; mount -o remount,size=64M /run"
    assert_whole "$crawl"
    assert_eq 1 "$(query '.[0].attempts' list crawls "$crawl")" "attempts"
}

run_is_full() { [[ $(in_capsule df --output=avail -k /run | tail -n 1) -lt 1024 ]]; }

# The data directory is moved away while the orchestrator works, and returned: nothing is written to what no later process finds.
moved_data_directory() {
    local crawl
    configure_space 1M
    crawl=$(pages "$PAGES" moved testcare,testcareless)
    wait_for 60 some_are_done "$crawl" 2
    in_capsule mv $data $data.away
    wait_for 20 says "was moved, removed or replaced"
    assert_contains "$(archivist status 2>&1 || true)" "was moved, removed or replaced" "archivist status"
    wait_for 60 stands
    # systemd may have made an empty directory for the sandbox of a unit that was starting.
    in_capsule sh -c "rmdir $data 2>/dev/null; mv -T $data.away $data"
    assert_whole "$crawl"
}

prepare() {
    writers
    configure </dev/null
}

read_only_at_the_start() { unusable_at_the_start read-only "mount -o remount,ro $data" "mount -o remount,rw $data" "read"; }

full_at_the_start() {
    unusable_at_the_start full "rm -f $data/archivist.sqlite3*; dd if=/dev/zero of=$data/filler bs=4k 2>/dev/null || true" "rm $data/filler" "full"
}

tmp_of_a_hook() {
    configure_space 1M
    assert_tmp mode=1777,size=64k "No space left"
    assert_tmp mode=1777,nr_inodes=1 "No space left"
    assert_tmp mode=1777,ro "Read-only file system"
}

# Prints the figures of the other cases.
nothing_incomplete_is_recorded() {
    needs no_space no_inodes read_only_archive read_only_at_the_start full_at_the_start tmp_of_a_hook
    figure "F9 hooks with the disk short of space, inodes, or read-only: $(awk '{ n += $1 } END { print n }' "$recorded"), all recorded as they were;" \
        "/tmp short: $(wc -l <"$tmps"); orchestrator ended: 0"
}

cases no_space no_inodes no_space_in_run moved_data_directory read_only_archive archive_of_another_installation read_only_at_the_start full_at_the_start tmp_of_a_hook nothing_incomplete_is_recorded
