#!/bin/bash
# A hook of one crawl that attacks everything outside its crawl: files and processes of another crawl, other pages, the
# orchestrator. Root makes the same attempts first, where all of them must succeed: so each attempt is valid.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

state=/var/lib/archivist
queue=4711

clean() {
    in_capsule sh -c "touch $signs/go; rm -rf $state/personas/test $state/lib/test /dev/shm/test-victim"
    forget_configuration
}

prepare() {
    in_capsule mkdir -p $signs
    # The victim: a crawl with a waiting hook, and with secrets in every place that hooks use.
    plugin testvictim <<'SH'
#!/usr/bin/python3
import ctypes, os, pathlib, time
for place in (".", os.environ["CRAWL_DIR"], "/tmp", os.environ["PERSONAS_DIR"], "/var/tmp", "/dev/shm"):
    os.makedirs(place, exist_ok=True)
    pathlib.Path(place, "test-victim").write_text("secret\n")
ctypes.CDLL(None).msgget(4711, 0o1666)
pathlib.Path("ready").touch()
while not os.path.exists("/srv/archivist-test/go"):
    time.sleep(0.1)
SH
    plugin testhostile <<'SH'
#!/bin/sh
bash /srv/archivist-test/probe "$PWD" /srv/archivist-test/targets >probe.txt
ls "$SNAP_DIR/.." >beside.txt
SH
    plugin testbystander on_Snapshot__10_testbystander.finite.bg.sh <<'SH'
#!/bin/sh
echo up >up.txt
exec sleep 60
SH
    plugin testkills <<'SH'
#!/usr/bin/python3
import os, signal, time
while not os.path.exists("../testbystander/up.txt"):
    time.sleep(0.05)
os.kill(-1, signal.SIGKILL)
print('{"type": "ArchiveResult", "status": "succeeded", "output_str": "alone"}')
SH
    # The hooks of each crawl share a /tmp, as with a browser of abx-plugins.
    in_capsule cp -a /usr/share/archivist/plugins/housekeeping $plugins/testhousekeeping
    in_capsule sed -i 's/"chrome"/"testvictim", "testhostile"/' $plugins/testhousekeeping/config.json
    capsule cp "$(dirname "$0")/sandbox/probe" "$CAPSULE:$signs/probe"
    in_capsule setpriv --reuid archivist --regid archivist-hook --clear-groups sh -c "umask 0007
        mkdir -p $state/lib/test; echo tool >$state/lib/test/tool"
    in_capsule sh -c "umask 0027; mkdir -p $state/personas/test; echo secret >$state/personas/test/profile"
    in_capsule touch $signs/targets
    configure </dev/null
    # A finished page creates the lists of the archive.
    assert_status 0 archivist add --wait --plugins testhostile http://hostile.test/0
    victims
    targets | in_capsule sh -c "cat >$signs/targets"
}

# Starts the victim, and archives earlier pages of the attacker's crawl.
victims() {
    victim=$(add --plugins testvictim http://victim.test/)
    wait_for 30 has_unit "archivist-hook-testvictim-s*.service"
    page=$(query '.[0].id' list snapshots "$victim")
    wait_for 30 in_capsule test -e "$(directory snapshots "$page")/testvictim/ready"
    hook=$(unit_property "archivist-hook-testvictim-$page.service" MainPID)
    worker=$(unit_property "archivist-snapshot-${page#s}.service" MainPID)
    # These stand for files of a hook without a sandbox, where those of the attacker are hidden.
    in_capsule setpriv --reuid archivist-hook --regid archivist-hook --clear-groups sh -c "echo secret >/dev/shm/test-victim; chmod 666 /dev/shm/test-victim"
    in_capsule python3 -c "import ctypes; ctypes.CDLL(None).msgget($queue, 0o1666)"
}

directory() { query '.[0].directory' list "$1" "$2"; }

# Files, sockets and processes that must be out of reach: KIND NAME PATH.
targets() {
    local tmp=$state/archive/.run/$victim crawl_directory page_directory
    crawl_directory=$(directory crawls "$victim") page_directory=$(directory snapshots "$page")
    cat <<TARGETS
read_file shared-tmp $tmp/test-victim
write_file shared-tmp $tmp/test-victim
list shared-tmp $tmp
make shared-tmp $tmp
read_file profile $tmp/personas/test-victim
write_file profile $tmp/personas/test-victim
list all-shared-tmp $state/archive/.run
read_file crawl $crawl_directory/test-victim
write_file crawl $crawl_directory/test-victim
make crawl $crawl_directory
read_file page $page_directory/testvictim/test-victim
write_file page $page_directory/testvictim/test-victim
list page $page_directory
make page $page_directory
make archive $state/archive
read_file index $state/archive/index.html
list persona $state/personas/test
read_file persona $state/personas/test/profile
write_file persona $state/personas/test/profile
write_file library $state/lib/test/tool
make library $state/lib/test
read_file database $state/archivist.sqlite3
write_file database $state/archivist.sqlite3
write_file database-log $state/archivist.sqlite3-wal
make state $state
connect system-bus /run/dbus/system_bus_socket
connect manager /run/systemd/private
connect journal-of-others /run/systemd/journal/io.systemd.journal
call bus-api org.archivist1
read_file configuration-of-root /etc/shadow
write_file plugin $plugins/testvictim/config.json
make plugins /usr/share/archivist/plugins
read_file shared-memory /dev/shm/test-victim
write_file shared-memory /dev/shm/test-victim
queue message-queue $queue
see hook $hook
read_file hook-environment /proc/$hook/environ
list hook-root /proc/$hook/root/tmp
signal hook $hook
see worker $worker
signal worker $worker
read_file worker-environment /proc/$worker/environ
TARGETS
}

count() { grep -c . || true; }

everything_is_there_for_root() {
    in_capsule mkdir -p $signs/root
    in_capsule bash $signs/probe $signs/root $signs/targets >"$work/root"
    assert_eq "" "$(grep ' no$' "$work/root")" "tries that fail for root too, and so prove nothing"
}

a_hook_reaches_nothing_of_it() {
    needs everything_is_there_for_root
    local crawl last
    crawl=$(archivist add --json --plugins testhostile http://hostile.test/1 http://hostile.test/2 | evaluate '.crawl')
    wait_for 60 is_over "$crawl"
    last=$(query 'map(.id) | max' list snapshots "$crawl")
    in_capsule cat "$(directory snapshots "$last")/testhostile/probe.txt" >"$work/hook"
    assert_eq "$(count <"$work/root")" "$(count <"$work/hook")" "tries that were made"
    assert_eq "" "$(grep ' own no$' "$work/hook")" "what a hook cannot do with what is its own"
    assert_eq "" "$(grep -v ' own ' "$work/hook" | grep ' yes$')" "what a hook of another crawl reaches"
    assert_eq "$crawl $last" "$(in_capsule cat "$(directory snapshots "$last")/testhostile/beside.txt" | xargs)" "what it sees of the pages of its own crawl"
}

# Hooks of one crawl can see and kill each other's processes.
a_hook_that_kills_all_it_can_kills_its_own_crawl() {
    local killer
    killer=$(add --plugins testkills,testbystander http://hostile.test/3)
    wait_for 60 is_over "$killer"
    assert_eq "testbystander: ended by SIGKILL testkills: succeeded" \
        "$(query 'map(.plugin + ": " + (.error // .status)) | sort' list results "$killer")" "hooks of its own crawl"
    [[ $(unit_property "archivist-hook-testvictim-$page.service" MainPID) == "$hook" ]] || fail "the hook of another crawl is gone"
}

# Each running crawl has one user for all of its hooks, different from those of other crawls.
crawls_have_users_of_their_own() {
    local first second
    in_capsule rm -f $signs/go
    first=$(add --plugins testvictim http://victim.test/1) second=$(add --plugins testvictim http://victim.test/2)
    wait_for 30 users_are 2 "$first" "$second"
    in_capsule touch $signs/go
    wait_for 60 is_over "$first"
    wait_for 60 is_over "$second"
    assert_nothing_is_left
}

# users_are N CRAWL…: the hooks of these crawls run as N users, all of them users for hooks of crawls.
users_are() {
    local n=$1 crawl users
    shift
    users=$(for crawl in "$@"; do
        in_capsule systemctl show --property=User --value "archivist-hook-*-$(page_of "$crawl").service" | grep . | sort -u
    done)
    [[ $(wc -l <<<"$users") == "$n" && $(sort -u <<<"$users" | grep -cx 'archivist-hook-[0-9]*') == "$n" ]]
}

page_of() { query '.[0].id' list snapshots "$1"; }

the_victim_is_unharmed() {
    in_capsule touch $signs/go
    wait_for 30 is_over "$victim"
    assert_eq "succeeded" "$(query 'of("testvictim") | map(.status)' list results "$victim")" "result of the victim"
}

cases everything_is_there_for_root a_hook_reaches_nothing_of_it a_hook_that_kills_all_it_can_kills_its_own_crawl \
    the_victim_is_unharmed crawls_have_users_of_their_own
