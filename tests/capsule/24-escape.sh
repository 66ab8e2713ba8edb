#!/bin/bash
# A hook that uses its own directories to get at what is not its own: the worker reads, renames and removes files there, with the
# rights to the whole archive. sandbox/hostile-files is what the hooks run.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

state=/var/lib/archivist
slow=/etc/systemd/system/archivist-hook-testlinger-.service.d

clean() {
    in_capsule sh -c "rm -rf $slow; systemctl daemon-reload"
    forget_configuration
}

# hostile PLUGIN HOOK ARGUMENT…: a plugin whose hook does this.
hostile() {
    plugin "$1" "$2" <<SH
#!/bin/sh
exec python3 $signs/hostile-files ${*:3}
SH
}

prepare() {
    configure </dev/null
    capsule cp "$(dirname "$0")/sandbox/hostile-files" "$CAPSULE:$signs/hostile-files"
    plugin testvictim <<'SH'
#!/bin/sh
echo "a private report" >private-report.txt
echo '{"type": "Snapshot", "url": "http://intranet.victim.test/secret-path?token=s3cr3t", "title": "VICTIM"}' >urls.jsonl
echo VICTIM-STDOUT
SH
    # Its directory is attacked; what can be learnt from that is read by the other one.
    plugin testplain <<'SH'
#!/bin/sh
echo plain >plain.txt
SH
    plugin testreads on_Snapshot__80_testreads.sh <<'SH'
#!/bin/sh
cat "$SNAP_DIR/index.jsonl" >learnt.txt
SH
    restart
    assert_status 0 archivist add --wait --plugins testvictim http://victim.test/
    victim=$(query 'max_by(.id | number).directory' list snapshots)/testvictim
    hostile testarchive on_Snapshot__05_testarchive.daemon.bg.sh plant testplain $state/archive
    hostile testpages on_Snapshot__05_testpages.daemon.bg.sh plant testplain "$victim"
    hostile testrace on_Snapshot__05_testrace.daemon.bg.sh race testplain "$victim" 300000
    hostile testlitter on_Snapshot__05_testlitter.daemon.bg.sh litter testplain
    hostile testpage on_CrawlSetup__05_testpage.daemon.bg.sh page
    hostile testrecord on_Snapshot__30_testrecord.sh record
    hostile testlinger on_Snapshot__30_testlinger.sh linger
    in_capsule sh -c "mkdir -p $slow; printf '[Service]\nTimeoutStopSec=3s\n' >$slow/50-test.conf; systemctl daemon-reload"
    restart
    untouched=$(victim_files)
}

# Everything of the victim's directory: names, modes and content.
victim_files() { in_capsule sh -c "cd '$victim' && stat -c '%n %A %i' * && cat * | md5sum" | xargs; }

# crawl_of PLUGINS ARGUMENT…: archives a page with these, prints the crawl's id.
crawl_of() {
    local crawl
    crawl=$(add --plugins "$@" http://attacker.test/)
    wait_for 60 is_over "$crawl"
    echo "$crawl"
}

page_directory() { query '.[0].directory' list snapshots "$1"; }
crawl_directory() { query '.[0].directory' list crawls "$1"; }

a_directory_is_not_replaced_by_the_archive() {
    local crawl directory
    crawl=$(crawl_of testarchive,testplain,testreads)
    directory=$(page_directory "$crawl")
    assert_eq "" "$(in_capsule sh -c "grep -ho 'private-report[a-z.]*' $directory/*/learnt.txt $directory/index.html | head -1")" "names of other crawls' files"
    assert_eq no "$(in_capsule sh -c "test -e $state/archive/stdout.log && echo yes || echo no")" "an output in the archive's top"
    in_capsule rm -f $state/archive/stdout.log
    assert_eq succeeded "$(query 'of("testplain") | map(.status)' list results "$crawl")" "the hook whose directory is attacked"
}

a_directory_is_not_replaced_by_that_of_another_page() {
    local crawl
    crawl=$(crawl_of testpages,testplain --depth 1)
    assert_eq "http://attacker.test/" "$(query 'map(.url) | sort' list snapshots "$crawl")" "pages of a crawl that links to another's"
    assert_eq "$untouched" "$(victim_files)" "files of the other page"
}

a_race_for_a_directory_is_lost() {
    local crawl n
    untouched=$(victim_files)
    for n in 1 2; do
        crawl=$(crawl_of testrace,testplain,testreads --depth 1)
        assert_eq "http://attacker.test/" "$(query 'map(.url) | sort' list snapshots "$crawl")" "pages after race $n"
        assert_eq "$untouched" "$(victim_files)" "files of the other page after race $n"
    done
}

# of DIRECTORY TEST…: what find finds there.
of() { in_capsule find "$@" -printf '%P ' | head -c 300; }

what_is_left_anywhere_is_harmless() {
    local crawl directory
    crawl=$(crawl_of testlitter,testplain)
    for directory in "$(page_directory "$crawl")" "$(crawl_directory "$crawl")"; do
        assert_nothing "links in ${directory##*/}" of "$directory" -type l
        assert_nothing "programs in ${directory##*/}" of "$directory" -type f -perm /7111
        assert_nothing "pipes in ${directory##*/}" of "$directory" -type p
        assert_eq "/etc/shadow" "$(in_capsule cat "$directory/shadow-link.broken-symlink.txt")" "what is left of a link in ${directory##*/}"
    done
}

the_page_of_a_crawl_is_ours() {
    local crawl
    crawl=$(crawl_of testpage,testplain)
    in_capsule cat "$(crawl_directory "$crawl")/index.html" >"$work/page"
    assert_eq 0 "$(grep -c FORGED "$work/page")" "the list after a daemon's last word"
    assert_eq yes "$(grep -q attacker.test "$work/page" && echo yes)" "the page in the list"
}

the_record_of_a_page_is_ours() {
    local crawl directory
    crawl=$(crawl_of testrecord,testplain)
    directory=$(page_directory "$crawl")
    assert_eq "archivist 0" "$(in_capsule sh -c "stat -c %U $directory/index.jsonl; grep -c FORGED $directory/index.jsonl" | xargs)" "the record"
}

what_outlives_its_hook_is_waited_for() {
    local crawl
    crawl=$(crawl_of testlinger,testplain)
    wait_for 15 nothing_lingers
    assert_nothing "links of a process that outlived its hook" of "$(page_directory "$crawl")" -type l
    # systemd remembers that it had to kill the process.
    in_capsule systemctl reset-failed "archivist-hook-testlinger-*" 2>/dev/null || true
    assert_nothing_is_left
}

nothing_lingers() { ! in_capsule pgrep -f "hostile-files linger" >/dev/null; }

cases a_directory_is_not_replaced_by_the_archive a_directory_is_not_replaced_by_that_of_another_page \
    a_race_for_a_directory_is_lost what_is_left_anywhere_is_harmless the_page_of_a_crawl_is_ours \
    the_record_of_a_page_is_ours what_outlives_its_hook_is_waited_for
