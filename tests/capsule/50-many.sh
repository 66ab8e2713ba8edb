#!/bin/bash
# Very many pages with a trivial plugin: all sealed, none lost, no unit left. Prints the cost of a page, of a unit without
# archivist, and of a process.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

[[ ${EXTENT-short} == full ]] && PAGES=10000 || PAGES=60
BARE=20

clean() { forget_configuration; }

prepare() {
    plugin testtrivial <<'SH'
#!/bin/sh
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"done"}'
SH
    configure </dev/null
}

# cpu UNIT: prints its CPU time in microseconds.
cpu() { echo $(($(unit_property "$1" CPUUsageNSec) / 1000)); }

# peak of resident memory of the orchestrator, in KiB
memory() { in_capsule awk '/^VmHWM:/ { print $2 }' "/proc/$(unit_property $service MainPID)/status"; }

now() { echo "${EPOCHREALTIME/[.,]/}"; }

# rate WORDS MICROSECONDS COUNT: prints a figure.
rate() { awk -v what="$1" -v usec="$2" -v n="$3" 'BEGIN { printf "figure: %-45s %8.1f/s  %7.2f ms each\n", what, n * 1e6 / usec, usec / n / 1000 }'; }

archives_many() {
    local began cpu_began ended crawl units
    cpu_began=$(cpu $service) began=$(now)
    crawl=$(in_capsule sh -c "seq -f http://many.test/%g $PAGES | archivist add --json --plugins testtrivial --wait -" | gojq --raw-output --slurp '.[0].crawl')
    ended=$(now)
    assert_eq sealed "$(crawl_status "$crawl")" "status of the crawl"
    assert_eq "$PAGES sealed 1" "$(query '[length, (map(.status) | unique[]), (map(.attempts) | unique[])]' list snapshots "$crawl" --limit 0)" "snapshots"
    assert_eq "$PAGES succeeded done 1" "$(query '[length, (map(.status) | unique[]), (map(.output) | unique[]), (map(.attempts) | unique[])]' \
        list results "$crawl" --limit 0)" "results"
    units=$((2 * PAGES + 1))
    assert_eq "$units success" "$(query '[length, (map(if .outcome == {kind: "exit", detail: 0} then "success" else .outcome end) | unique[])]' \
        list runs "$crawl" --limit 0)" "runs"
    assert_nothing_is_left
    rate "$PAGES pages" $((ended - began)) "$PAGES"
    rate "  units of them" $((ended - began)) $units
    rate "  CPU of the orchestrator a unit" $(($(cpu $service) - cpu_began)) $units
    rate "  CPU of a worker" "$(cpu_of "$crawl" snapshot)" "$PAGES"
    rate "  CPU of a hook" "$(cpu_of "$crawl" hook)" "$PAGES"
    figure "peak memory of the orchestrator: $(memory) KiB"
}

# cpu_of CRAWL KIND: prints the recorded CPU time of all runs of this kind in microseconds.
cpu_of() { query "map(select(.kind == \"$2\").cpu_usec // 0) | add" list runs "$1" --limit 0; }

without_us() {
    local began
    began=$(now)
    in_capsule bash -c "for ((n = 0; n < $BARE; n++)); do systemd-run --quiet --wait --collect true; done"
    rate "systemd-run --wait, one after the other" $(($(now) - began)) $BARE
    began=$(now)
    in_capsule bash -c "for ((n = 0; n < $BARE; n++)); do /bin/true; done"
    rate "fork and exec" $(($(now) - began)) $BARE
}

cases archives_many without_us
