# shellcheck shell=bash
# For fault tests: like capsule tests, and each prints its measurements with `figure`. Short runs have small counts and take
# minutes; EXTENT=full (tests/run --full) has the counts by which the product is judged.
source "$(dirname "${BASH_SOURCE[0]}")/../capsule/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../capsule/archivist.sh"

# tool COMMAND ARGUMENT…: runs a command of tool.py in the capsule.
tool() { in_capsule python3 /opt/faults/tool.py "$@"; }

put_tool() {
    in_capsule mkdir -p /opt/faults
    capsule cp "$ROOT/tests/faults/tool.py" "$CAPSULE:/opt/faults/tool.py"
}

# pages COUNT NAME PLUGIN: adds a crawl of COUNT pages and prints its id, without waiting.
pages() {
    in_capsule sh -c "seq -f http://$2.test/%g $1 | archivist add --json --plugins $3 -" | evaluate '.crawl'
}

# many_hooks PLUGIN COUNT [EXTENSION]: creates a plugin with COUNT hooks, each the script on stdin; in the foreground unless the
# extension says otherwise, such as finite.bg.sh.
many_hooks() {
    local dir=$plugins/$1
    in_capsule sh -c "mkdir -p $dir && cat >$dir/script && echo '{\"type\": \"object\", \"properties\": {}}' >$dir/config.json &&
        for n in \$(seq -w $2); do cp $dir/script $dir/on_Snapshot__20_$1\$n.${3-sh}; done && chmod 755 $dir/on_* && rm $dir/script"
}

# finish CRAWL [SECONDS]: waits until it is over.
finish() { wait_for "${2-120}" is_over "$1"; }

# hooks_with_codes COUNT: creates plugin testcode, whose hooks record their exit status.
hooks_with_codes() {
    many_hooks testcode "$1" <<'SH'
#!/bin/bash
codes=(0 0 1 2 3 10 77 125 126 127 255)
code=${codes[RANDOM % ${#codes[@]}]}
sleep 0.0$((RANDOM % 10))
hook=${0##*/}
echo "${hook%.sh} end $code" >>story
exit "$code"
SH
}

# assert_outcomes CRAWL COUNT: every hook has a run with its exit status. Sets $verdict.
assert_outcomes() {
    finish "$1" 900
    verdict=$(tool outcomes "$1" "$2")
    assert_eq sealed "$(crawl_status "$1")" "status of the crawl"
    assert_eq "missing=0 wrong=0" "${verdict% unstarted=*}" "outcomes"
}

# hooks_at_a_gate COUNT: creates plugin testwaits, whose hooks run concurrently, end when the gate opens, and record that.
hooks_at_a_gate() {
    many_hooks testwaits "$1" finite.bg.sh <<'SH'
#!/bin/bash
name=${0##*/}
echo ready
exec 3<>/srv/archivist-test/gate
read -r -n 1 <&3
echo "${name%.sh} end 0" >>story
SH
}

# gated PAGES NAME COUNT: adds a crawl, waits until COUNT hooks run up to the gate, and sets $crawl.
gated() {
    make_gate
    # shellcheck disable=SC2034 # for the faults
    crawl=$(pages "$1" "$2" testwaits)
    wait_for 300 are_waiting "$3"
}

# A pipe that no process has open forgets what was written to it, and a hook that has just started has not opened it yet: a unit
# keeps it open.
make_gate() {
    in_capsule sh -c "systemctl stop test-gate 2>/dev/null; rm -f $signs/gate; mkfifo -m 666 $signs/gate"
    in_capsule systemd-run --quiet --collect --unit=test-gate --service-type=exec --property=StandardInput=file:$signs/gate \
        --property=StandardOutput=file:$signs/gate sleep infinity
}

are_waiting() { (($(waiting) == $1)); }

waiting() { in_capsule systemctl list-units --plain --no-legend --state=running 'archivist-hook-testwaits*' | wc -l; }

# One line for each of them.
invocations() { in_capsule systemctl show --property=InvocationID --value 'archivist-hook-testwaits*' | grep . | sort; }

# open_gate COUNT: returns when all have passed.
open_gate() {
    in_capsule python3 -c "open('$signs/gate', 'r+b', buffering=0).write(b'x' * $1)"
    wait_for 60 are_waiting 0
    in_capsule systemctl stop test-gate
}
