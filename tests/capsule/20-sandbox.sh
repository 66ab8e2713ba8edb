#!/bin/bash
# The units and drop-ins that the packages ship, as they work: validity, exposure, and what a hostile hook, a worker and
# Chromium can and cannot do.
# In a short run on every release.
source "$(dirname "$0")/lib.sh"

state=/var/lib/archivist
site=$state/archive/19700101/sandbox.test
own=$site/1 other=$site/2
# Names that the drop-ins apply to, but that the orchestrator does not take for units of its own.
hook=archivist-hook-sandboxtest-test1.service
hook_user=archivist-hook-16
other_hook=archivist-hook-sandboxtest-test2.service
worker=archivist-snapshot-test.service
# The orchestrator's own file under another name, with another program.
orchestrator=/run/systemd/system/sandbox-orchestrator.service

prepare() {
    install_fleet
    install_pools
    put "$(dirname "$0")/sandbox/hostile-hook" /usr/local/bin/hostile-hook
    put "$(dirname "$0")/sandbox/interfaces" /usr/local/bin/interfaces
    in_capsule setpriv --reuid archivist --regid archivist --init-groups \
        sh -c "umask 0007; mkdir -p $own/wget $other/wget; touch $other/wget/secret"
    in_capsule sh -c 'for secret in /home /var/tmp; do echo secret >$secret/sandbox-test; done'
    in_capsule sh -c "test -e $state/archivist.sqlite3 || install -m 640 -g archivist /dev/null $state/archivist.sqlite3"
}

put() {
    capsule cp "$1" "$CAPSULE:$2"
    in_capsule chmod 755 "$2"
}

clean() {
    purge_fleet
    purge_pools
    in_capsule systemctl stop $other_hook $worker 2>/dev/null || true
    in_capsule systemctl reset-failed 'archivist-*' 2>/dev/null || true
    in_capsule userdel sandbox-member 2>/dev/null || true
    in_capsule rm -rf $state/archive/19700101 /home/sandbox-test /var/tmp/sandbox-test /usr/local/bin/hostile-hook /usr/local/bin/interfaces
    in_capsule rm -rf $orchestrator /run/sandbox-test /run/sandbox-test.user
    in_capsule systemctl daemon-reload
}

# Units of the package, and of the drop-ins one for each prefix, with the most exposure that systemd-analyze may find, in tenths. It
# gives one point less for the options that are left out because they cost time and change nothing for a unit without capabilities.
# Networks and alerts must not have no_new_privs: pasta has an AppArmor profile, and sending mail may need a set-gid program.
CEILINGS=(
    "15 archivist-orchestrator.service"
    "20 archivist-fleet.service"
    "20 archivist-apparmor.service"
    "45 archivist-reach.service"
    "50 archivist-metrics.service"
    "50 archivist-retry.service"
    "45 archivist-retention-held.service"
    "30 archivist-backup@srv.service"
    "50 archivist-watch@test.service"
    "30 archivist-unhealthy@test.service"
    "65 archivist-network@test.service"
    "65 archivist-network-local@test.service"
    "20 archivist-sonic.service"
    "20 archivist-crawl-1.service"
    "20 archivist-snapshot-1.service"
    "30 archivist-hook-wget-s1.service"
    "30 archivist-hook-screenshot-s1.service"
    "40 archivist-hook-chrome-chrome_launch-c1.service"
    "40 archivist-hook-chromium-chromium_launch-c1.service"
    "40 archivist-hook-singlefile-singlefile-s1.service"
    "30 archivist-check-status-test.service"
    "25 archivist-store-s1.service"
    "20 archivist-delete-1.service"
    "20 archivist-entries-1.service"
    "30 archivist-verify-1.service"
    "18 archivist-index-pages.service"
    "18 archivist-search-1.service"
    "40 archivist-check-lighthouse-test.service"
    "75 archivist-alert-1.service"
    "30 archivist-replay-page-1.service"
    "8 archivist-import-1.service"
)

# Only hooks and checks of a user manager run programs of others: the rest is the user.
USER_CEILINGS=(
    "65 archivist-orchestrator.service"
    "65 archivist-crawl-1.service"
    "65 archivist-snapshot-1.service"
    "60 archivist-hook-wget-s1.service"
    "60 archivist-check-status-test.service"
    "50 archivist-import-1.service"
)

# exposed system|user LINE…: prints the units above their ceilings. A unit that the package has only drop-ins for is made, with nothing
# in it but what the orchestrator says.
exposed() {
    local manager=$1
    shift
    in_capsule env HOOK_USER=$hook_user sh -c '
        manager=$1
        shift
        mkdir -p -m 700 /run/sandbox-test.user/systemd /etc/systemd/$manager
        export XDG_RUNTIME_DIR=/run/sandbox-test.user
        for line; do
            unit=${line#* } file=
            case $unit in
                *@*) ;;
                *) test -e "/usr/lib/systemd/$manager/$unit" || file=/etc/systemd/$manager/$unit ;;
            esac
            test -z "$file" || printf "[Service]\nExecStart=/usr/bin/archivist\n" >"$file"
            case $manager/$unit in system/archivist-hook-*) echo "User=$HOOK_USER" >>"$file" ;; esac
            systemd-analyze --$manager security --offline=yes --no-pager --threshold="${line% *}" "$unit" >/tmp/exposure 2>&1 ||
                echo "${line% *}: $(tail -n 1 /tmp/exposure)"
            test -z "$file" || rm "$file"
        done
        rm -f /tmp/exposure' sh "$manager" "$@"
}

# analyze system|user VERB…: the manager of a user need not run.
analyze() {
    local manager=$1
    shift
    in_capsule sh -c 'mkdir -p -m 700 /run/sandbox-test.user/systemd; manager=$1; shift
        XDG_RUNTIME_DIR=/run/sandbox-test.user exec systemd-analyze --$manager --no-pager "$@"' sh "$manager" "$@" 2>&1
}

is_little_exposed() {
    local unit missing
    assert_nothing "units above their ceiling, in tenths" exposed system "${CEILINGS[@]}"
    assert_nothing "units of a user above their ceiling, in tenths" exposed user "${USER_CEILINGS[@]}"
    # A service or a prefix that is not in the list.
    for unit in $(in_capsule sh -c 'cd /usr/lib/systemd/system && ls -d archivist-*.service archivist-*.service.d | sed "s/[.]service.*//" | sort -u'); do
        [[ " ${CEILINGS[*]} " == *" $unit"* || $unit == archivist-hook-* ]] || missing+=" $unit"
    done
    assert_eq "" "${missing-}" "units without a ceiling"
}

# Every file for systemd is understood: newer versions remove options, and log a warning for each start of a unit that has one. Debian
# need not have the program that loads AppArmor profiles.
units_are_valid() {
    local manager units
    for manager in system user; do
        mapfile -t units < <(in_capsule sh -c "cd /usr/lib/systemd/$manager && ls -d archivist* | grep -v '[.]d\$' | sed 's/@[.]/@test./'")
        ((${#units[@]} > 10)) || fail "only ${#units[@]} units for the $manager manager"
        analyze $manager verify --man=no "${units[@]}" | grep -v 'apparmor_parser is not executable' | sort | uniq -c >"$work/verify" || true
        [[ ! -s $work/verify ]] || fail "$manager: $(head -c 2000 "$work/verify")"
    done
}

# run_hook PROPERTIES… -- COMMAND…
run_hook() { in_capsule systemd-run --quiet --wait --pipe --collect --uid=$hook_user --unit=$hook --property=BindPaths=$own "$@"; }

confines_a_hostile_hook() {
    in_capsule systemd-run --quiet --uid=$hook_user --unit=$other_hook --property=Type=exec --property=BindPaths=$other sleep infinity
    in_capsule systemd-run --quiet --unit=$worker --property=Type=exec sleep infinity
    run_hook --setenv=OWN=$own --setenv=OTHER=$other \
        --setenv=OTHER_HOOK="$(unit_property $other_hook MainPID)" \
        --setenv=REACHED= --setenv=WORKER="$(unit_property $worker MainPID)" hostile-hook || fail "the sandbox of hooks has a hole, or is too tight"
    assert_eq archivist-hook "$(in_capsule stat -c %G $own/wget/sub)" "group of what a hook makes"
    local unit
    for unit in $other_hook $worker; do
        assert_eq no "$(unit_property "$unit" DefaultDependencies)" "whether PID 1 reports three targets at the start of $unit"
    done
    in_capsule systemctl stop $other_hook $worker
    # Units end before their slice.
    assert_contains "$(unit_property archivist.slice After)" local-fs.target "what archivist.slice ends before"
}

# assert_closed WHAT INTERFACES: what reaches no others than root reaches, and these alone.
assert_closed() {
    local what=$1 found=$2 name
    shift 2
    for name in $found; do
        [[ " $* " == *" $name "* ]] || fail "$what reaches $name"
    done
}

# What passes by a sandbox of files and users: tried by root, for whom most of it is open, and by each kind of unit.
kernel_interfaces_are_closed() {
    local unit name open network=(socket_inet netlink_route)
    open=$(in_capsule interfaces | tr '\n' ' ')
    for name in io_uring_setup userfaultfd bpf perf_event_open keyctl fanotify_init mount process_vm_readv pidfd_getfd kcmp \
        quotactl open_by_handle_at setns personality unshare_user socket_packet configuration; do
        [[ $open == *"$name"* ]] || echo "note: $name is closed to root too, so that it shows nothing"
    done
    for unit in hook-sandboxtest-test1 check-status-test; do
        assert_closed "archivist-$unit" "$(in_unit "archivist-$unit" --uid=$hook_user)" "${network[@]}"
    done
    # A renderer's sandbox is a user namespace and an empty root.
    assert_closed "a hook with chromium" "$(in_unit archivist-hook-chromium-test --uid=$hook_user)" "${network[@]}" unshare_user chroot
    assert_closed "a worker" "$(in_unit "${worker%.service}")" configuration
    open=$(in_unit archivist-alert-test)
    for name in io_uring_setup bpf keyctl userfaultfd personality unshare_user; do
        [[ $open != *"$name"* ]] || fail "an alert reaches $name"
    done
    in_capsule sh -c "sed '/^\(BusName\|Type\|Restart\|Watchdog\|ExecReload\|Runtime\)/d
        s|^ExecStart=.*|ExecStart=/usr/local/bin/interfaces\nType=oneshot\nStandardOutput=truncate:/run/sandbox-test|' \
        /usr/lib/systemd/system/archivist-orchestrator.service >$orchestrator; systemctl daemon-reload"
    in_capsule systemctl start sandbox-orchestrator.service
    # It is root: the terminals of root are its own.
    assert_closed "the orchestrator" "$(in_capsule cat /run/sandbox-test)" configuration writable_/dev/pts
}

in_unit() {
    local unit=$1
    shift
    in_capsule systemd-run --quiet --wait --pipe --collect --unit="$unit" "$@" interfaces
}

run_worker() { in_capsule systemd-run --quiet --wait --pipe --collect --unit=$worker --property=Type=exec "$@"; }

confines_a_worker() {
    run_worker sh -c "touch $own/by-worker && test ! -e $state/archivist.sqlite3 && test ! -e $state/personas" ||
        fail "a worker must see the archive and nothing else of $state"
    run_worker busctl --system list --no-pager >/dev/null || fail "a worker must reach the bus"
    run_worker sh -c 'test "$(grep -c : /proc/self/net/dev)" = 1' || fail "a worker must be in a network without interfaces"
    in_capsule systemctl start archivist-orchestrator.service
    assert_eq "$(in_capsule readlink "/proc/$(unit_property archivist-orchestrator.service MainPID)/ns/net")" \
        "$(run_worker readlink /proc/self/ns/net)" "network of a worker: that of the orchestrator"
    ! run_worker sh -c 'chmod 600 /dev/shm || touch /dev/shm/x' 2>/dev/null || fail "a worker must not write shared memory"
    ! run_worker python3 -c 'import socket; socket.socket(socket.AF_INET)' 2>/dev/null || fail "a worker must have no network"
    assert_eq "archivist:archivist-hook 660" "$(in_capsule stat -c '%U:%G %a' $own/by-worker)" "what a worker makes"
}

# Takes a picture, and its renderers are in a sandbox of its own, below that of the unit.
chromium_keeps_its_sandbox() {
    local unit=archivist-hook-chromium-test.service picture=$own/wget/page.png
    in_capsule systemd-run --quiet --wait --pipe --collect --uid=$hook_user --unit=$unit --property=BindPaths=$own --setenv=HOME=/tmp \
        chromium --headless --disable-gpu --screenshot=$picture 'data:text/html,<h1>archivist</h1>' ||
        fail "chromium makes no screenshot"
    assert_contains "$(in_capsule head -c 4 $picture | tr -d '\0')" PNG "start of the screenshot"

    in_capsule systemd-run --quiet --uid=$hook_user --unit=$unit --property=Type=exec --property=BindPaths=$own --setenv=HOME=/tmp \
        chromium --headless --disable-gpu --remote-debugging-port=0 about:blank
    wait_for 20 has_sandboxed_renderer "$(unit_property $unit ControlGroup)"
    in_capsule systemctl stop $unit
    in_capsule systemctl reset-failed $unit 2>/dev/null || true
}

# A renderer, in a pid namespace of its own (second number in NSpid).
has_sandboxed_renderer() {
    in_capsule sh -c "for pid in \$(cat /sys/fs/cgroup$1/cgroup.procs); do
        tr '\\0' ' ' </proc/\$pid/cmdline | grep -q -- '--type=renderer' &&
            grep -Eq '^NSpid:[[:space:]]+[0-9]+[[:space:]]+[0-9]+' /proc/\$pid/status && exit 0
    done; exit 1" 2>/dev/null
}

# `systemctl edit archivist-hook-sandboxtest-.service`: what an administrator says wins over what code asked for.
obeys_the_administrator() {
    local drop_in=/etc/systemd/system/archivist-hook-sandboxtest-.service.d result
    in_capsule sh -c "mkdir -p $drop_in; printf '[Service]\nRuntimeMaxSec=1\n' >$drop_in/override.conf; systemctl daemon-reload"
    in_capsule systemd-run --quiet --wait --uid=$hook_user --unit=$hook --property=RuntimeMaxSec=1h sleep 20 || true
    result=$(unit_property $hook Result)
    in_capsule sh -c "rm -r $drop_in; systemctl daemon-reload; systemctl reset-failed $hook" || fail "the hook is gone before its result was read"
    assert_eq timeout "$result" "result of a hook with RuntimeMaxSec= in a drop-in"
}

# ask USER INTERFACE [METHOD]: the answer to a method that does not exist, or to METHOD with a wrong argument, so that only the policy
# matters.
ask() {
    in_capsule setpriv --reuid "$1" --regid "$(in_capsule id --group "$1")" --init-groups \
        busctl --system call org.archivist1 /org/archivist1 "$2" "${3:-NoSuchMethod}" b true 2>&1 || true
}

is_refused() { [[ ${1,,} == *"access denied"* || $1 == *AccessDenied* || $1 == *"security policy"* ]]; }

assert_refused() {
    local answer
    answer=$(ask "$@")
    is_refused "$answer" || fail "$1 may call ${*:2}: $answer"
}

assert_let_through() {
    local answer
    answer=$(ask "$@")
    # A method without arguments answers.
    [[ ${answer,,} == *unknown* || ${answer,,} == *signature* || ${answer,,} == *argument* || $answer == 's "{'* ]] || fail "$1 may not call ${*:2}: $answer"
}

guards_its_bus_name() {
    in_capsule useradd --groups archivist sandbox-member
    local feature
    for feature in Manager Retention Store Watches; do
        assert_let_through root org.archivist1.$feature
        assert_let_through sandbox-member org.archivist1.$feature
        assert_refused archivist org.archivist1.$feature
    done
    assert_let_through root org.archivist1.Search
    assert_refused sandbox-member org.archivist1.Search
    assert_let_through archivist org.archivist1.Worker
    assert_refused sandbox-member org.archivist1.Worker
    assert_refused archivist org.freedesktop.DBus.Properties
    local user
    for user in archivist-hook $hook_user; do
        assert_refused "$user" org.archivist1.Manager
        assert_refused "$user" org.archivist1.Worker
    done
    assert_refused daemon org.archivist1.Manager
    local method
    for method in Metrics Retry; do assert_let_through archivist-timer org.archivist1.Manager $method; done
    assert_let_through archivist-timer org.archivist1.Watches Check
    assert_refused archivist-timer org.archivist1.Watches History
    for method in Add Cancel List Reload Show; do assert_refused archivist-timer org.archivist1.Manager $method; done
    assert_refused archivist-timer org.archivist1.Worker
    assert_refused archivist-timer org.freedesktop.DBus.Properties
}

cases units_are_valid is_little_exposed confines_a_hostile_hook confines_a_worker kernel_interfaces_are_closed \
    chromium_keeps_its_sandbox obeys_the_administrator guards_its_bus_name
