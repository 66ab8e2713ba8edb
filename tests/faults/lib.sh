# shellcheck shell=bash
# For the faults: as for the tests of capsules, and each says with `figure` what it saw. The counts are small ones, so that
# all of them take minutes; EXTENT=full (tests/run --full) is what the product is judged by.
source "$(dirname "${BASH_SOURCE[0]}")/../capsule/lib.sh"
source "$(dirname "${BASH_SOURCE[0]}")/../capsule/archivist.sh"

# times SHORT FULL
times() { [[ ${EXTENT-short} == full ]] && echo "$2" || echo "$1"; }

# figure WORDS: the line that the run of all tests shows.
figure() { echo "figure: $*"; }

# tool COMMAND ARGUMENT…: of tool.py, in the capsule.
tool() { in_capsule python3 /opt/faults/tool.py "$@"; }

put_tool() {
    in_capsule mkdir -p /opt/faults
    capsule cp "$ROOT/tests/faults/tool.py" "$CAPSULE:/opt/faults/tool.py"
}

# pages COUNT NAME PLUGIN: a crawl of so many pages, without waiting; its id.
pages() {
    in_capsule sh -c "seq -f http://$2.test/%g $1 | archivist add --json --plugins $3 -" | evaluate 'd["crawl"]'
}

# many_hooks PLUGIN COUNT: a plugin with so many hooks, all the script on stdin.
many_hooks() {
    local dir=$plugins/$1
    in_capsule sh -c "mkdir -p $dir && cat >$dir/script && echo '{\"type\": \"object\", \"properties\": {}}' >$dir/config.json &&
        for n in \$(seq -w $2); do cp $dir/script $dir/on_Snapshot__20_$1\$n.${3-sh}; done && chmod 755 $dir/on_* && rm $dir/script"
}


# Crawls may take longer than is_over is patient elsewhere.
finish() { wait_for "${2-120}" is_over "$1"; }

# hooks_with_codes COUNT: plugin testcode, whose hooks end with exit statuses that they write down.
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

# assert_outcomes CRAWL COUNT: every hook has run, and is on record with what it did. Sets $verdict.
assert_outcomes() {
    finish "$1" 900
    verdict=$(tool outcomes "$1" "$2")
    assert_eq sealed "$(crawl_status "$1")" "status of the crawl"
    assert_eq "missing=0 wrong=0" "${verdict% unstarted=*}" "outcomes"
}
