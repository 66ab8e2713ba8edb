#!/bin/bash
# F11: hooks with several processes that exceed their memory limit: the run of each is out-of-memory, whichever of its processes
# allocated it, other hooks are not affected, and the peak of each is recorded. Then the whole slice is short of memory: nothing
# more starts, the orchestrator reports it, and continues by itself.
source "$(dirname "$0")/machine.sh"

PAGES=$(times 2 30)
limits=/etc/systemd/system/archivist-hook-testhog-.service.d

clean() {
    in_capsule sh -c "rm -rf $limits; systemctl stop test-press.service 2>/dev/null; systemctl daemon-reload"
    forget_configuration
}

# Both plugins have three processes. In the first, the main process exceeds the limit; in the second, a child does, while the
# main process reports success.
prepare() {
    need_machine
    put_tool
    plugin testhog on_Snapshot__20_main.sh <<'SH'
#!/bin/sh
sleep 60 & sleep 60 &
exec python3 -c 'x = bytearray(256 << 20)'
SH
    plugin testhog on_Snapshot__21_child.sh <<'SH'
#!/bin/sh
sleep 60 &
python3 -c 'x = bytearray(256 << 20)' &
wait $!
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "all is well"}'
echo done >done.txt
SH
    plugin testcalm on_Snapshot__19_calm.finite.bg.sh <<'SH'
#!/bin/sh
python3 -c 'import time; x = bytearray(20 << 20); time.sleep(3)'
echo done >done.txt
SH
    in_capsule sh -c "mkdir -p $limits && printf '[Service]\nMemoryMax=32M\n' >$limits/90-test.conf && systemctl daemon-reload"
    configure <<'END'
[Orchestrator]
RetrySec=1s
MemoryPressureMax=20%
END
}

a_hog_is_alone() {
    local crawl peaks
    crawl=$(pages "$PAGES" hog testhog,testcalm)
    finish "$crawl" 900
    assert_eq "testcalm=exit testhog=out-of-memory" "$(hooks "$crawl" '.outcome.kind')" "outcomes"
    assert_eq "$((2 * PAGES)) failed" "$(results "$crawl" testhog)" "results of those that took too much"
    assert_eq "$PAGES succeeded" "$(results "$crawl" testcalm)" "results of those beside them"
    assert_contains "$(archivist list results "$crawl")" "out of memory" "list of results"
    peaks=$(query '[("testhog", "testcalm") as $name | "\($name)=\(of($name) | map(.memory_peak // 0) | max / 1048576 | floor)M"]' \
        list runs "$crawl" --limit 0)
    [[ $peaks =~ testhog=3[0-2]M\ testcalm=[2-9][0-9]M ]] || fail "peaks of memory: $peaks"
    figure "F11 hooks over MemoryMax: $((2 * PAGES)), on record as out of memory: $((2 * PAGES)), unharmed beside them: $PAGES, peaks $peaks"
    assert_nothing_is_left
}

# hooks CRAWL FILTER: prints the distinct values of the runs of each plugin.
hooks() { query "map(select(.kind == \"hook\") | .plugin + \"=\" + ($2)) | unique | sort" list runs "$1" --limit 0; }

# results CRAWL PLUGIN: prints the number of results and their distinct states.
results() {
    query "of(\"$2\") | [length, (map(.status) | unique[])]" list results "$1" --limit 0
}

# A unit in archivist.slice that repeatedly exceeds MemoryHigh=: the kernel throttles it each time.
pressure_holds_up_what_is_new() {
    local crawl began
    in_capsule systemd-run --quiet --unit=test-press --slice=archivist.slice --property=MemoryHigh=24M --property=MemorySwapMax=0 \
        --property=RuntimeMaxSec=300 python3 -c 'while True: x = bytearray(64 << 20)'
    wait_for 120 is_short_of_memory
    crawl=$(pages 1 press testcalm)
    assert_contains "$(archivist why "$crawl")" "MemoryPressureMax=20%" "why nothing is started"
    assert_contains "$(archivist status)" "memory is short" "status"
    assert_eq queued "$(crawl_status "$crawl")" "crawl while memory is short"
    in_capsule systemctl stop test-press.service
    began=$EPOCHSECONDS
    finish "$crawl" 180
    assert_eq sealed "$(crawl_status "$crawl")" "crawl after memory was short"
    figure "F11 nothing started while memory was short, done by itself $((EPOCHSECONDS - began)) s after that was over"
    assert_nothing_is_left
}

# "+ 0": awk compares a field that sub() has changed as a string, and "8.51" is greater than "40".
is_short_of_memory() {
    in_capsule awk '/^some/ { sub("avg10=", "", $2); exit !($2 + 0 > 40) }' /sys/fs/cgroup/archivist.slice/memory.pressure
}

cases a_hog_is_alone pressure_holds_up_what_is_new
