#!/bin/bash
# What other local users can read about a unit while it runs, and what remains afterwards.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

# Secrets: in the password of the URL, in its query, and in a setting.
password=hunter2 token=share-me key=SK-live-123456
url="http://bob:$password@private.test/page?token=$token#part"
units=/run/systemd/units
watch=/etc/archivist/testsecret.watch
gate=/run/systemd/system/testsecret-gate.service gate_drop_in=/etc/systemd/system/archivist-hook-testmany-.service.d

clean() {
    in_capsule touch $signs/go $signs/gate 2>/dev/null || true
    forget_gate || true
    in_capsule rm -rf /etc/systemd/system/archivist-hook-testsecret-.service.d $watch
    in_capsule sh -c "rm -f $units/log-extra-fields:archivist-*testsecret* /run/testsecret-list"
    in_capsule systemctl daemon-reload
    forget_configuration 2>/dev/null || true
    in_capsule userdel stranger 2>/dev/null || true
}

prepare() {
    in_capsule useradd --no-create-home stranger
    # Writes its arguments and variables where only root can read them, and waits until the test has inspected its unit.
    plugin testsecret <<'EOF'
#!/bin/bash
{ printf '%s\0' "$@"; env -0; ls -a /etc/archivist | tr '\n' ' '; readlink /proc/self/fd/0; } >$SNAP_DIR/testsecret/got
printf '<0>EMERGENCY of testsecret\n' >&2
until [[ -e /srv/archivist-test/go ]]; do sleep 0.05; done
[[ -e /srv/archivist-test/fine ]] || exit 1
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "done"}'
EOF
    plugin testbroken <<<'#!/nonexistent/interpreter'
    plugin testmany <<<'#!/bin/true'
    in_capsule sh -c "echo '{\"type\": \"object\", \"properties\": {
        \"TESTSECRET_API_KEY\": {\"type\": \"string\", \"default\": \"\"},
        \"TESTSECRET_MODE\": {\"type\": \"string\", \"default\": \"plain\"}}}' >$plugins/testsecret/config.json"
    in_capsule sh -c 'mkdir -p /etc/systemd/system/archivist-hook-testsecret-.service.d
        printf "[Service]\nEnvironment=TESTSECRET_MODE=drop-in\n" >/etc/systemd/system/archivist-hook-testsecret-.service.d/50-local.conf
        systemctl daemon-reload'
    configure </dev/null
}

as_stranger() { in_capsule setpriv --reuid stranger --regid stranger --clear-groups "$@"; }

# assert_silent WHAT: stdin contains no secret, and no token unless WHAT is output for the group.
assert_silent() {
    local text secret
    text=$(tr -d "\0")
    [[ -n $text ]] || fail "$1: there is nothing to look at"
    for secret in "$password" "$key" ${2-$token}; do
        [[ $text != *"$secret"* ]] || fail "$1 has '$secret': $(grep -a -- "$secret" <<<"$text" | head -n 3)"
    done
}

# assert_hook_input WHAT: stdin is the path of the hook's standard input, and nothing else.
assert_hook_input() {
    local paths
    paths=$(cat)
    [[ $paths == /run/archivist/input/archivist-hook-testsecret-s*([0-9]).service.*([0-9]) ]] || fail "$1: $paths"
}

hook_runs() { in_capsule systemctl --quiet is-active 'archivist-hook-testsecret-*.service'; }

units_are_silent() {
    crawl=$(add --plugins testsecret --set "TESTSECRET_API_KEY=$key" "$url")
    keep crawl
    wait_for 20 hook_runs
    as_stranger systemctl show --all 'archivist-*' | assert_silent "systemctl show"
    as_stranger systemctl cat 'archivist-*' | assert_silent "systemctl cat"
    as_stranger sh -c "cat /run/systemd/transient/archivist-*" | assert_silent "/run/systemd/transient"
    as_stranger sh -c "cat $units/log-extra-fields:archivist-*" | assert_silent "$units"
    as_stranger systemctl list-units --full --all 'archivist-*' | assert_silent "systemctl list-units"
    in_capsule sh -c "grep -rlF -- '$key' /run/archivist" | assert_hook_input "files in /run/archivist with the key"
    assert_eq "drwx------ root" "$(in_capsule stat --format='%A %U' /run/archivist/input)" "directory of standard inputs"
    assert_contains "$(as_stranger systemctl show --property=ExecStart 'archivist-hook-testsecret-*')" \
        "on_Snapshot__20_testsecret.sh" "the hook's program in ExecStart="
}

lists_are_silent() {
    needs units_are_silent
    local what
    snapshot=$(query '.[0].id' list snapshots "$crawl")
    for what in crawls snapshots runs; do
        archivist list "$what" "$crawl" --json | assert_silent "list $what" ""
    done
    assert_contains "$(query '.[0].url' list snapshots "$crawl")" "http://private.test/page?token=$token" "URL in a list"
    assert_eq "(hidden)" "$(query '.[0].config.TESTSECRET_API_KEY' list crawls "$crawl")" "a key in a list"
    { archivist show "$crawl"; archivist show "$snapshot"; archivist show "$snapshot" --json; } | assert_silent "show" ""
    { archivist why "$snapshot"; archivist status; archivist status --json; } | assert_silent "why, status" ""
}

# hook_got: prints the arguments and variables of the hook, one per line.
hook_got() { in_capsule sh -c "tr '\\0' '\\n' <$(query '.[0].directory' list snapshots "$crawl")/testsecret/got"; }

hooks_get_everything() {
    needs units_are_silent
    local got
    got=$(hook_got)
    assert_contains "$got" "--url=$url" "arguments of the hook"
    assert_contains "$got" "TESTSECRET_API_KEY=$key" "variables of the hook"
    assert_contains "$got" "TESTSECRET_MODE=drop-in" "a variable in an administrator's drop-in"
    assert_contains "$got" "HOME=/tmp" "variables that systemd sets too"
    assert_contains "$got" ". .. plugins /dev/null" "what a hook sees of /etc/archivist, and its standard input"
}

journal_is_silent() {
    needs units_are_silent
    in_capsule touch $signs/go
    wait_for 20 is_over "$crawl"
    # journald records the command line of a process for users who may read the journal.
    in_capsule journalctl --quiet --boot --output=export | grep -av '^_CMDLINE=' | assert_silent "the journal" ""
    in_capsule sh -c "cd /var/lib/archivist/archive && find . -name 'index.*' -size -1024k -exec cat {} +" |
        assert_silent "pages and records of the archive" ""
    local lines
    lines=$(journal --output=json "ARCHIVIST_CRAWL_ID=${crawl#c}" ARCHIVIST_PLUGIN=testsecret --grep EMERGENCY)
    assert_contains "$lines" '"PRIORITY":"6"' "priority of what a hook calls an emergency"
    assert_contains "$lines" "<0>EMERGENCY" "what the hook wrote"
}

# A record that is input again finds its page by its id: the hook gets the complete URL.
records_are_read_back() {
    needs journal_is_silent
    local directory
    directory=$(query '.[0].directory' list snapshots "$crawl")
    in_capsule sh -c "rm $signs/go; touch $signs/fine; grep '\"type\":\"Snapshot\"' $directory/index.jsonl >/run/testsecret-list"
    in_capsule systemd-run --quiet --collect --unit=testsecret-run --property=StandardInput=file:/run/testsecret-list archivist run
    wait_for 20 hook_runs
    hook_got | grep -qF -- "--url=$url" || fail "a page that is retried from its record has lost its user"
    in_capsule touch $signs/go
    wait_for 20 is_over "$crawl"
    assert_eq 1 "$(query 'length' list snapshots "$crawl")" "pages of the crawl after its record was fed back"
    in_capsule rm /run/testsecret-list
}

failures_to_execute_are_reported() {
    local broken
    broken=$(add --plugins testbroken http://private.test/)
    wait_for 20 is_over "$broken"
    assert_contains "$(archivist list results "$broken" --json)" "its program cannot be executed" "result of a hook without interpreter"
    journal "ARCHIVIST_CRAWL_ID=${broken#c}" | grep -q "failed to execute '.*testbroken.sh': ENOENT\|failed to execute '.*testbroken.sh': No such file" ||
        fail "the journal does not say why"
}

alert_runs() { in_capsule systemctl --quiet is-active 'archivist-alert-*.service'; }

# A check of a site with a password fails, and an alert with a key in its command reports it.
alerts_are_silent() {
    in_capsule rm -f $signs/go $signs/alert
    in_capsule sh -c "cat >$signs/tell && chmod 755 $signs/tell" <<'EOF'
#!/bin/bash
{ printf '%s\n' "$@"; echo "url $ARCHIVIST_URL, $ARCHIVIST_STATE"; } >&2
until [[ -e /srv/archivist-test/go ]]; do sleep 0.05; done
EOF
    in_capsule sh -c "printf '[Watch]\nURL=http://bob:$password@127.0.0.1:9/x?token=$token\nStatus=yearly\nDownAfter=1\nOnDown=$signs/tell $key\n' >$watch"
    in_capsule systemctl daemon-reload
    in_capsule archivist watch run --kind status testsecret >/dev/null 2>&1 || true
    wait_for 30 alert_runs
    as_stranger systemctl show --all 'archivist-alert-*' | assert_silent "systemctl show of an alert"
    as_stranger sh -c 'cat /run/systemd/transient/archivist-alert-*' | assert_silent "/run/systemd/transient of an alert"
    in_capsule touch $signs/go
    in_capsule journalctl --quiet --boot --output=cat ARCHIVIST_WATCH=testsecret | grep -q "url http://bob:$password@127.0.0.1:9/x?token=$token, down" ||
        fail "the alert was not told of the URL"
    { archivist watch show testsecret; archivist watch history testsecret --json; archivist why testsecret; } | assert_silent "watch show, history, why" ""
    in_capsule rm "$watch"
    in_capsule systemctl daemon-reload
}

fields_left() { in_capsule sh -c "ls $units | grep -c '^log-extra-fields:archivist-[csha]' || true"; }

nothing_is_left_in_run() { [[ $(fields_left) == 0 ]]; }

# Files below /run except the journal's streams, temporary files, cgroups, mounts, and units in the memory of systemd.
traces() {
    {
        in_capsule sh -c "find /run -xdev -path /run/log -prune -o -print | grep -v '^/run/systemd/journal/streams/'
            find /tmp /var/tmp /dev/shm /var/lib/archivist/archive/.run -mindepth 1 2>/dev/null
            find /sys/fs/cgroup -type d | grep -v init.scope; sed 's/^/mount /' /proc/1/mountinfo"
        in_capsule systemctl list-units --all --plain --no-legend 'archivist-*' | cut -d' ' -f1
    } | LC_ALL=C sort
}

# What is new. Sessions that end meanwhile take away their own traces.
new_traces() { LC_ALL=C comm -13 <(echo "$before") <(traces); }

nothing_is_new() { [[ -z $(new_traces) ]]; }

units_leave_nothing() {
    local pages=${PAGES-60}
    wait_for 20 nothing_is_left_in_run
    before=$(traces)
    seq "$pages" | sed 's|^|http://private.test/|' | in_capsule archivist add --wait --plugins testmany - >/dev/null 2>&1
    wait_for 20 nothing_is_left_in_run
    local last
    last=$(deadline 20)
    until nothing_is_new; do
        ((EPOCHSECONDS < last)) || fail "left after $((pages * 2)) units: $(new_traces)"
        sleep 0.2
    done
}

# An orchestrator removes the files that a killed one left, of its own units only.
leftovers_are_removed_at_the_start() {
    local own="archivist-hook-testsecret-s999999.service" other="archivist-second-hook-testsecret-s1.service"
    local fields="$units/log-extra-fields:" inputs=/run/archivist/input/
    in_capsule sh -c "echo A=1 | tee '$fields$own' '$fields$other' '$inputs$own.999999' >'$inputs$other.1'"
    restart
    in_capsule archivist status >/dev/null
    wait_for 10 in_capsule test ! -e "$fields$own" -a ! -e "$inputs$own.999999"
    in_capsule test -e "$fields$other" -a -e "$inputs$other.1" || fail "files of another instance's unit were removed"
    in_capsule rm "$fields$other" "$inputs$other.1"
}

# A unit waits for its network when the orchestrator is killed: it finds its standard input later.
input_outlives_a_killed_orchestrator() {
    local waiting
    in_capsule sh -c "rm -f $signs/gate; mkdir -p $gate_drop_in; cat >$gate_drop_in/50-local.conf" <<<"[Unit]
Requires=testsecret-gate.service
After=testsecret-gate.service"
    in_capsule sh -c "cat >$gate; systemctl daemon-reload" <<<"[Service]
Type=oneshot
ExecStart=/bin/sh -c 'until test -e $signs/gate; do sleep 0.05; done'"
    waiting=$(add --plugins testmany http://private.test/waits)
    wait_for 20 in_capsule sh -c "systemctl list-jobs | grep -q archivist-hook-testmany"
    in_capsule systemctl kill --signal=KILL $service
    wait_for 20 in_capsule archivist status
    in_capsule touch $signs/gate
    wait_for 20 is_over "$waiting"
    assert_eq true "$(query 'map(select(.plugin == "testmany") | .outcome == {kind: "exit", detail: 0})' list runs "$waiting")" \
        "whether the hook ran, once"
    forget_gate
}

forget_gate() {
    in_capsule rm -rf $gate_drop_in $gate
    in_capsule systemctl daemon-reload
}

cases units_are_silent lists_are_silent hooks_get_everything journal_is_silent records_are_read_back \
    failures_to_execute_are_reported alerts_are_silent input_outlives_a_killed_orchestrator units_leave_nothing \
    leftovers_are_removed_at_the_start
