#!/bin/bash
# Plugins of the older generation: families Binary, Crawl, CrawlEnd and Snapshot, run by their extension without an execute bit, with ids
# in their arguments: arguments, order, and effect of their records.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

clean() {
    in_capsule rm -rf /var/lib/archivist/lib/bin/older-tool /opt/older /usr/local/bin/test-node
    in_capsule sh -c '[ ! -L /usr/local/bin/node ] || rm /usr/local/bin/node'
    forget_configuration
}

prepare() {
    capsule cp "$(dirname "$0")/older" "$CAPSULE:/opt/older"
    in_capsule sh -c "mkdir -p $plugins; cp -a /opt/older/. $plugins/; chown -R root:root $plugins/test*; chmod -R go-w $plugins/test*"
    in_capsule sh -c 'command -v node' >/dev/null || stand_in_for_node
    configure </dev/null
}

# A replacement for node, if it is not installed: does what the only script does.
stand_in_for_node() {
    in_capsule sh -c 'cat >/usr/local/bin/test-node && chmod 755 /usr/local/bin/test-node && ln -s test-node /usr/local/bin/node' <<'PY'
#!/usr/bin/python3
import os, sys
assert os.path.basename(sys.argv[1]) == "on_Snapshot__54_script.js", sys.argv
open("argv-54_script", "w").writelines(word + "\n" for word in sys.argv[2:])
open(os.environ["SNAP_DIR"] + "/order.txt", "a").write("54_script\n")
print('{"type": "ArchiveResult", "status": "noresult", "output_str": "nothing"}')
PY
}

directory() { query '.[0].directory' list "$1" "$2"; }

# words DIRECTORY FILE: prints the lines of the file, joined by blanks.
words() { in_capsule paste -sd'|' "$1/$2"; }

is_skipped_without_its_program() {
    assert_status 3 archivist add --wait --plugins testneeds http://older.test/0
    assert_contains "$output" "nothing was archived" "a page without a hook"
    assert_contains "$(query 'of("testneeds") | map(.status + ": " + .error)' list results --status skipped)" \
        "skipped: program 'older-tool' not found: archivist plugins install testneeds" "why it is not run"
}

brings_a_program() {
    local crawl
    assert_status 0 archivist plugins install testneeds
    crawl=$(sed -n 's/.*looking for them as \(c[0-9]*\)$/\1/p' <<<"$output")
    assert_eq '--name=older-tool|--binproviders=env,testtool|--overrides={"testtool":{"packages":["a b"]}}|--binary-id=older-tool|--machine-id=archivist' \
        "$(words "$(directory crawls "$crawl")" "testtool/argv")" "arguments of a Binary hook"
    assert_eq /var/lib/archivist/lib/bin/older-tool "$(query 'map(select(.name == "older-tool").abspath)' plugins --binaries)" "the program"
}

archives() {
    needs brings_a_program
    local ids
    assert_status 3 archivist add --wait --depth 1 --plugins testcrawl,testpage,testneeds 'http://older.test/1' 'http://older.test/2?q=$(reboot)'
    crawl=$(sed -n 's/^queued 2 URLs as \(c[0-9]*\)$/\1/p' <<<"$output")
    assert_eq "3 sealed" "$(query '[length, (map(.status) | unique[])]' list snapshots "$crawl")" "pages"
    ids=$(query 'map(.id) | sort_by(number)' list snapshots "$crawl")
    read -r page _ child <<<"$ids"
    top=$(directory crawls "$crawl") own=$(directory snapshots "$page")
    keep crawl page child top own
}

calls_them_as_they_expect() {
    needs archives
    local hook
    for hook in 03_listen 06_fetch 08_watch 30_read 54_script 60_skips 61_fails 99_last; do
        assert_eq "--url=http://older.test/1|--snapshot-id=$page|--crawl-id=$crawl|--depth=0" "$(words "$own" "testpage/argv-$hook")" "arguments of $hook"
    done
    # The list of URLs is one argument with a line for each.
    for hook in 05_first 20_beside 50_second end; do
        assert_eq "--crawl-id=$crawl|--source-url=http://older.test/1|http://older.test/2?q=\$(reboot)|--url=http://older.test/1|--snapshot-id=$crawl" \
            "$(words "$top" "testcrawl/argv-$hook")" "arguments of $hook"
    done
    assert_contains "$(query 'map(select(.hook // "" | endswith("30_read"))) | only.argv' list runs "$page")" \
        "/usr/bin/env python3 $plugins/testpage/on_Snapshot__30_read.py" "the command of a .py"
}

# Background hooks delay no other hook; foreground hooks run in order, also after a failure. Then the finite background hook has
# its time, and all daemons get SIGTERM at once: the order of their ends is not defined.
keeps_their_order() {
    needs archives
    local order
    order=$(words "$own" order.txt)
    # No hook waits until the finite one runs.
    [[ $order == *"06_fetch|"* ]] || fail "06_fetch did not start: $order"
    order=${order/06_fetch|}
    assert_eq "03_listen|08_watch|30_read|54_script|60_skips|61_fails|99_last|06_fetch ended|03_listen ended|08_watch ended|50_after" \
        "${order/08_watch ended|03_listen ended/03_listen ended|08_watch ended}" "order of a page's hooks"
    assert_eq "05_first|20_beside|50_second|20_beside ended|10_end" "$(words "$top" order.txt)" "order of the crawl's hooks"
    query '(map(select(.hook and (.owner | startswith("s"))).started_at) | min) >
        (map(select(.hook | IN("on_Crawl__05_first", "on_Crawl__50_second")).ended_at) | max)' list runs "$crawl" --limit 0 | grep -q true || fail "pages before the crawl's setup"
}

# told_of_unit HOOK: prints the messages of systemd about the unit of the hook.
told_of_unit() {
    local unit
    unit=$(query "map(select(.hook // \"\" | endswith(\"$1\")).unit)" list runs "$page")
    journal --output=cat _PID=1 UNIT="$unit"
}

judges_them() {
    needs archives
    assert_eq "03_listen.bg=succeeded 06_fetch.finite.bg=succeeded 08_watch__background=succeeded 30_read=succeeded 50_after=noresults 54_script=noresults 60_skips=skipped 61_fails=failed 99_last=succeeded" \
        "$(query 'of("testpage") | map((.hook | sub("^.*?__"; "")) + "=" + .status) | sort' list results "$page")" "results of the page"
    assert_eq "told to end" "$(query 'map(select(.hook | endswith("03_listen.bg")).output)' list results "$page")" "what a daemon says at its end"
    assert_eq "made by older-tool" "$(words "$own" testneeds/made.txt)" "what was made with the program"
    assert_eq "older" "$(query '.[0].tags' list snapshots "$page")" "tags of the page"
    assert_eq 'http://older.test/child?a=1&b=$HOME%20%22x%22 1 A child older one two' \
        "$(query '.[0] | [.url, .depth, .title, (.tags | sort[])]' list snapshots "$child")" "the page that a hook found"
    # systemd reports a failure of the failed hook, and none of the skipped one.
    assert_contains "$(told_of_unit 61_fails)" "Failed with result 'exit-code'" "the journal of a hook that failed"
    [[ $(told_of_unit 60_skips) != *Failed* ]] || fail "the journal has a failure of a hook that skipped: $(told_of_unit 60_skips)"
    assert_nothing_is_left
}

cases is_skipped_without_its_program brings_a_program archives calls_them_as_they_expect keeps_their_order judges_them
