#!/bin/bash
# Pools: systemd starts, monitors, restarts and stops workers, without the orchestrator.
# In a short run early, because it takes minutes.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

state=/run/test-pool
hint='the package archivist-pools is not installed; apt install archivist-pools'

clean() {
    in_capsule sh -c "archivist pool remove testpool 2>/dev/null; archivist pool remove testrun 2>/dev/null
        rm -rf $state /etc/archivist/test*.pool /etc/archivist/test*.pool.d; systemctl daemon-reload
        systemctl reset-failed 'archivist-pool-test*' 2>/dev/null; systemctl start $service" || true
    purge_pools
}

prepare() {
    install_pools
    in_capsule sh -c "systemctl stop $service; mkdir -p $state /opt/pools"
    capsule cp "$ROOT/tests/capsule/pools/worker.py" "$CAPSULE:/opt/pools/worker.py"
    in_capsule sh -c 'printf "#!/bin/sh\nexec sleep 1000\n" >/opt/pools/run.sh; chmod 755 /opt/pools/run.sh'
}

mode() { in_capsule sh -c "echo $2 >$state/mode$1"; }

# worker INDEX FIELD: prints a field of archivist pool status --json.
worker() { query ".workers | map(select(.index == $1)) | only.$2" pool status testpool; }

all_run() { [[ $(query '.running == .declared and .declared == (.pids | length)' pool status testpool) == true ]]; }

is_new() { # INDEX OLD-PID
    [[ $(worker "$1" alive) == true && $(worker "$1" pid) != "$2" ]]
}

# Prints the run time of the last ended process of worker 0 in microseconds; negative while it runs.
last_life() {
    in_capsule sh -c 'eval "$(systemctl show -p ActiveEnterTimestampMonotonic -p ActiveExitTimestampMonotonic archivist-pool-testpool@0)"
        echo $((ActiveExitTimestampMonotonic - ActiveEnterTimestampMonotonic))'
}

was_restarted() { # SINCE: more often than that
    (($(worker 0 restarts) > $1))
}

has_ended() { (($(last_life) >= 0)); }

has_problem() { # INDEX WORDS
    [[ $(worker "$1" problem) == *"$2"* ]]
}

# What the package alone has, and what a machine without it says.
one_machine_has_no_pools() {
    purge_pools
    assert_eq "" "$(in_capsule dpkg --listfiles archivist | grep -E 'pool|unhealthy' || true)" "files of the package archivist"
    assert_contains "$(in_capsule dpkg-query --show --showformat '${Recommends}' archivist)" archivist-pools "what archivist recommends"
    in_capsule sh -c "printf '[Pool]\nExec=/bin/true\n' >/etc/archivist/testlone.pool; systemctl daemon-reload"
    assert_nothing "units of pools" in_capsule find /run/systemd/generator -name 'archivist-pool-*'
    assert_contains "$(journal --output=cat --identifier=archivist-generator -n 1)" "testlone.pool: $hint" "the journal"
    assert_status 1 archivist pool list
    assert_contains "$output" "$hint" "pool list"
    install_pools
    in_capsule test -e /run/systemd/generator/archivist-pool-testlone.target || fail "the installation makes no units"
    in_capsule sh -c 'rm /etc/archivist/testlone.pool; systemctl daemon-reload'
    assert_contains "$(in_capsule dpkg --listfiles archivist-pools)" man5/archivist.pool.5 "files of the package"
}

makes_valid_units() {
    capsule cp "$ROOT/tests/generate/pools/in/etc/archivist/web.pool" "$CAPSULE:/etc/archivist/testweb.pool"
    in_capsule sh -c "sed -i 's|/usr/bin/web-worker|/bin/true|; s|/usr/bin/curl|/bin/true|; s/^User=web/User=archivist/' /etc/archivist/testweb.pool
        printf '[Pool]\nExec=/bin/true\nWorkers=lots\n' >/etc/archivist/testbad.pool
        systemctl daemon-reload"
    local said
    said=$(in_capsule sh -c 'systemd-analyze verify --man=no /run/systemd/generator/archivist-* 2>&1' || echo "status $?")
    assert_eq "" "$said" "systemd-analyze verify"
    said=$(journal --output=cat --identifier=archivist-generator -n 1)
    assert_contains "$said" "/etc/archivist/testbad.pool:3: Workers= is 'lots'; write a number" "the journal about a bad file"
    assert_contains "$(archivist pool list 2>&1)" "testbad.pool:3: Workers=" "pool list about a bad file"
    assert_status 1 archivist pool start testbad
    in_capsule sh -c 'rm /etc/archivist/testbad.pool /etc/archivist/testweb.pool; systemctl daemon-reload'
}

runs_workers_by_index() {
    archivist pool add testpool -n 3 --set HeartbeatSec=4s --set StopSec=2s --set HealthIntervalSec=1s --set HealthTimeoutSec=4s \
        --set "HealthCheck=/bin/sh -c \"test ! -e $state/slow%i || sleep 60; test ! -e $state/sick%i\"" --now -- \
        /usr/bin/python3 /opt/pools/worker.py $state 'a b' '$HOME' '%i'
    wait_for 20 all_run
    assert_eq "worker-2" "$(worker 2 name)" "name of a worker"
    wait_for 20 logs_contain 2 'worker 2 worker-2 a b $HOME %i'
    assert_eq "active" "$(in_capsule systemctl is-active archivist-pool-testpool.target)" "the target"
}

logs_contain() { [[ $(archivist pool logs testpool "$1" 2>&1) == *"$2"* ]]; }

restarts_who_dies() {
    needs runs_workers_by_index
    local pid others
    pid=$(worker 0 pid) others=$(worker 1 pid),$(worker 2 pid)
    in_capsule kill -KILL "$pid"
    wait_for 20 is_new 0 "$pid"
    assert_eq 1 "$(worker 0 restarts)" "restarts of the worker that was killed"
    assert_eq "$others" "$(worker 1 pid),$(worker 2 pid)" "the other workers"
}

# The worker reads its mode at every heartbeat.
restarts_who_stops_beating() {
    needs runs_workers_by_index
    local pid
    pid=$(worker 1 pid)
    mode 1 hang
    wait_for 30 is_new 1 "$pid"
    mode 1 good
    assert_contains "$(archivist pool logs testpool 1)" "Watchdog timeout" "the journal about a worker that hung"
    wait_for 30 all_run
}

tells_of_who_never_beats() {
    needs runs_workers_by_index
    local pid
    mode 2 never
    in_capsule kill -KILL "$(worker 2 pid)"
    wait_for 30 has_problem 2 "no heartbeat in"
    pid=$(worker 2 pid)
    assert_contains "$(archivist pool status testpool)" "archivist heartbeat" "what to do about it"
    mode 2 good
    wait_for 20 beats 2
    assert_eq "$pid" "$(worker 2 pid)" "the worker that had not beaten"
    assert_status 1 archivist heartbeat
    assert_contains "$output" "NOTIFY_SOCKET" "a heartbeat that nobody hears"
}

beats() { [[ $(worker "$1" last_beat) != null ]]; }

ends_only_the_unhealthy() {
    needs runs_workers_by_index
    local restarts others
    wait_for 30 all_run
    others=$(worker 1 pid),$(worker 2 pid)
    for how in sick slow; do
        restarts=$(worker 0 restarts)
        in_capsule touch $state/${how}0
        wait_for 60 was_restarted "$restarts"
        # Its second process ends as well, after the time that every worker has before its first check.
        wait_for 30 has_ended
        assert_eq 1 "$(($(last_life) >= 1000000))" "whether a worker had a second until its check"
        in_capsule rm $state/${how}0
        wait_for 30 all_run
    done
    assert_eq "$others" "$(worker 1 pid),$(worker 2 pid)" "the workers that are well"
    # A worker that ignores its check is killed. Restarting the pool resets the count of restarts, so the delays are short again.
    archivist pool restart testpool
    mode 0 ignore
    in_capsule systemctl kill --signal=KILL archivist-pool-testpool@0.service
    wait_for 30 all_run
    restarts=$(worker 0 restarts)
    in_capsule touch $state/sick0
    wait_for 30 was_restarted "$restarts"
    in_capsule rm $state/sick0
    assert_contains "$(archivist pool logs testpool 0)" "ignores SIGTERM, killing it" "the journal about its end"
    wait_for 30 all_run
}

# The check is at fault, not the worker.
leaves_a_worker_alone_if_its_check_cannot_run() {
    needs runs_workers_by_index
    local pid how
    in_capsule sh -c 'printf "#!/bin/sh\nsleep 2\nexec no-such-check\n" >/opt/pools/slow.sh; chmod 755 /opt/pools/slow.sh'
    for how in /opt/pools/no-such-check "/bin/sh -c no-such-check" /opt/pools/slow.sh; do
        in_capsule sh -c "mkdir -p /etc/archivist/testpool.pool.d
            printf '[Pool]\nHealthCheck=$how\n' >/etc/archivist/testpool.pool.d/60-check.conf
            systemctl daemon-reload"
        archivist pool restart testpool
        wait_for 30 all_run
        pid=$(worker 0 pid)
        wait_for 20 has_problem 0 "the health check says nothing about this worker"
        # The fault of a further check replaces that of the first.
        in_capsule rm /run/archivist/pool-health/testpool-0
        wait_for 20 has_problem 0 "the health check says nothing about this worker"
        assert_eq "$pid 0" "$(worker 0 pid) $(worker 0 restarts)" "process and restarts of a worker whose check cannot run"
    done
    # It says so while the next check runs, too. After each, its fault is written a moment later.
    wait_for 20 says_during_a_check
    wait_for 20 says_in_status "its shell failed to execute a program (exit status 127)"
    assert_contains "$(archivist pool logs testpool 0)" "says nothing about it, ignoring the check" "the journal about the check"
    in_capsule sh -c "rm /etc/archivist/testpool.pool.d/60-check.conf; systemctl daemon-reload"
    archivist pool restart testpool
    wait_for 30 all_run
    assert_eq null "$(worker 0 problem)" "problem of a worker whose check runs again"
}

says_during_a_check() { check_runs && has_problem 0 "the health check says nothing about this worker" && check_runs; }

check_runs() { [[ $(unit_property archivist-pool-testpool-health@0.service ActiveState) == activating ]]; }

says_in_status() { archivist pool status testpool | grep --quiet --fixed-strings "$1"; }

scales() {
    needs runs_workers_by_index
    archivist pool scale testpool 5
    wait_for 20 all_run
    assert_eq 5 "$(query '.running' pool status testpool)" "workers after scaling up"
    archivist pool scale testpool 2
    assert_eq "2 2" "$(query '[.running, (.workers | length)]' pool status testpool)" "workers after scaling down"
    assert_status 2 archivist pool scale testpool 5000
    assert_status 2 archivist pool add testnone -- no-such-program
    assert_contains "$output" "found no program 'no-such-program'" "a program that is not there"
    assert_status 2 archivist pool add testnone -- /etc/passwd
    assert_eq 2 "$(query '.declared' pool status testpool)" "workers after a mistake"
}

# With a failing check, a worker that ignores SIGTERM, and one that waits for its restart.
stop_restarts_no_worker() {
    needs runs_workers_by_index
    local how began
    for how in "" --force --no-wait; do
        mode 0 ignore
        archivist pool restart testpool
        in_capsule sh -c "touch $state/sick1; systemctl kill --signal=KILL archivist-pool-testpool@1.service"
        began=$EPOCHSECONDS
        archivist pool stop $how testpool
        [[ $how == --no-wait ]] || nothing_runs || fail "after pool stop $how: $(archivist pool status testpool)"
        ((EPOCHSECONDS - began < $(times 60 15))) || fail "pool stop $how took $((EPOCHSECONDS - began)) s"
        wait_for 15 nothing_runs
        in_capsule rm $state/sick1
    done
    mode 0 good
    # Longer than RestartSec= and the interval of health checks.
    in_capsule sleep 3
    nothing_runs || fail "a worker was started again: $(archivist pool status testpool)"
    in_capsule systemctl reset-failed 'archivist-pool-testpool@*' 2>/dev/null || true
}

nothing_runs() {
    [[ -z $(in_capsule systemctl list-units --plain --no-legend --state=active,activating,deactivating \
        'archivist-pool-testpool@*' 'archivist-pool-testpool-health@*') ]]
}

# A program that cannot start fails for good after some restarts.
gives_up_who_never_starts() {
    needs runs_workers_by_index
    archivist pool start testpool
    mode 1 crash
    in_capsule sh -c "mkdir -p /etc/archivist/testpool.pool.d
        printf '[Pool]\nRestartSec=100ms\nRestartMaxSec=100ms\n' >/etc/archivist/testpool.pool.d/50-fast.conf
        systemctl daemon-reload; systemctl restart archivist-pool-testpool@1.service"
    wait_for 60 has_problem 1 "does not restart"
    assert_eq "failed" "$(worker 1 state)" "a worker that never starts"
    assert_eq "running" "$(worker 0 state)" "the other worker"
    mode 1 good
    archivist pool start testpool
    wait_for 20 all_run
}

restarts_no_worker_that_it_does_not_monitor() {
    needs runs_workers_by_index
    in_capsule sh -c "printf '[Pool]\nMonitor=no\n' >/etc/archivist/testpool.pool.d/50-fast.conf; systemctl daemon-reload"
    archivist pool start testpool
    in_capsule systemctl restart archivist-pool-testpool@1.service
    wait_for 20 all_run
    in_capsule systemctl kill --signal=KILL archivist-pool-testpool@1.service
    wait_for 20 has_problem 1 "does not restart, because of Monitor=no"
    assert_eq "failed 0" "$(worker 1 state) $(worker 1 restarts)" "a killed worker"
    in_capsule sh -c "rm /etc/archivist/testpool.pool.d/50-fast.conf; systemctl daemon-reload"
    archivist pool start testpool
    wait_for 20 all_run
}

runs_without_a_file() {
    assert_eq testrun "$(in_capsule sh -c 'cd /opt/pools && archivist pool run -n 2 --name testrun -- ./run.sh "a b"' 2>&1 || true)" "the name of the pool" 
    assert_eq "2" "$(query '.running' pool status testrun)" "workers without a file"
    in_capsule test ! -e /etc/archivist/testrun.pool
    archivist pool remove testrun
    assert_status 1 archivist pool status testrun
}

# systemd keeps the count of a worker that waits for its restart, over a start by hand.
a_restart_resets_counts() {
    local unit=archivist-pool-testrun@0.service waiting=/run/systemd/system/archivist-pool-testrun@.service.d
    archivist pool run -n 1 --name testrun -- /usr/bin/sleep 1000 >/dev/null
    in_capsule sh -c "mkdir $waiting; printf '[Service]\nRestartSec=2s\n' >$waiting/50-test.conf; systemctl daemon-reload"
    in_capsule systemctl kill --signal=KILL $unit
    wait_for 20 counts 1 running
    in_capsule systemctl kill --signal=KILL $unit
    wait_for 20 counts 1 auto-restart
    archivist pool restart testrun
    assert_eq "0 running" "$(count_and_state)" "restarts and state"
    archivist pool remove testrun
    in_capsule sh -c "rm -r $waiting; systemctl daemon-reload"
}

counts() { [[ $(count_and_state) == "$*" ]]; }

count_and_state() { echo "$(unit_property archivist-pool-testrun@0.service NRestarts) $(unit_property archivist-pool-testrun@0.service SubState)"; }

has_args() { [[ $(in_capsule ps -o args= -p "$(query ".workers[$1].pid" pool status testrun)") == "$2" ]]; }

names_workers_in_process_lists() {
    archivist pool run -n 2 --name testrun --set ProcessTitle=yes -- /usr/bin/sleep 1000 >/dev/null
    has_args 1 'testrun[1] 1000' || fail "the process list has: $(in_capsule ps -eo args | grep 1000)"
    archivist pool remove testrun
}

# Also if the command cannot clean up.
ends_with_its_command() {
    local signal
    for signal in INT TERM KILL; do
        in_capsule sh -c "archivist pool run --attached -n 2 --name testrun -- /usr/bin/sleep 1000 >/dev/null 2>&1 & echo \$! >$state/attached"
        wait_for 20 has_two
        in_capsule sh -c "kill -$signal \$(cat $state/attached)"
        wait_for 20 has_no_worker
        [[ $signal == KILL ]] || wait_for 20 is_not_declared
        wait_for 20 has_no_command
    done
    archivist pool remove testrun
    assert_nothing "scopes that are left" in_capsule systemctl list-units --all --plain --no-legend 'archivist-attached-*'
}

has_two() { [[ $(query '.running' pool status testrun 2>/dev/null) == 2 ]]; }

has_no_command() { ! has_unit archivist-attached-testrun.scope; }

has_no_worker() { [[ -z $(in_capsule systemctl list-units --plain --no-legend 'archivist-pool-testrun@*.service') ]]; }

is_not_declared() { in_capsule test ! -e /run/archivist/testrun.pool; }

version() { in_capsule dpkg-query --show --showformat '${Version}' "$1"; }

# An older archivist has the files of archivist-pools. They change their package while a worker runs.
an_upgrade_keeps_workers() {
    local older pid
    dpkg-deb --raw-extract "$DEB" "$work/tree"
    dpkg-deb --extract "$(pools_deb "$DEB")" "$work/tree"
    rm -r "$work/tree/usr/share/doc/archivist-pools"
    sed -i 's/^Version: .*/&~older/; s/archivist-pools, //' "$work/tree/DEBIAN/control"
    older=$work/archivist-older.deb
    dpkg-deb --root-owner-group -Zgzip -z1 --build "$work/tree" "$older" >/dev/null
    purge_pools
    apt_in_capsule install --allow-downgrades --no-install-recommends "$(put_deb "$older")"
    archivist pool add testold --now -- sleep 1000
    pid=$(query '.workers | only.pid' pool status testold)
    apt_in_capsule install --no-install-recommends "$(put_deb "$(pools_deb "$DEB")")" "$(put_deb)"
    assert_eq "$(version archivist)" "$(version archivist-pools)" "the versions"
    assert_contains "$(in_capsule dpkg --search archivist-unhealthy@.service)" archivist-pools: "the package of the unit"
    assert_eq "$pid" "$(query '.workers | only.pid' pool status testold)" "the worker"
}

removal_stops_the_workers() {
    needs an_upgrade_keeps_workers
    in_capsule dpkg --remove archivist-pools
    assert_nothing "workers" in_capsule systemctl list-units --plain --no-legend 'archivist-pool-*'
    assert_system_running
    in_capsule test -e /etc/archivist/testold.pool || fail "the removal removes what the administrator declared"
    install_pools
    assert_eq loaded "$(unit_property archivist-pool-testold.target LoadState)" "the pool after another installation"
    archivist pool remove testold
}

removes() {
    needs runs_workers_by_index
    archivist pool remove testpool
    in_capsule sh -c 'test ! -e /etc/archivist/testpool.pool && test ! -e /etc/archivist/testpool.pool.d'
    assert_nothing "what is left" in_capsule systemctl list-units --all --plain --no-legend 'archivist-pool-testpool*.service' 'archivist-pool-testpool*.timer'
    assert_eq inactive "$(in_capsule systemctl is-active $service || true)" "the orchestrator, all the while"
}

cases one_machine_has_no_pools makes_valid_units runs_workers_by_index restarts_who_dies restarts_who_stops_beating tells_of_who_never_beats \
    ends_only_the_unhealthy leaves_a_worker_alone_if_its_check_cannot_run scales stop_restarts_no_worker gives_up_who_never_starts \
    restarts_no_worker_that_it_does_not_monitor runs_without_a_file a_restart_resets_counts \
    names_workers_in_process_lists ends_with_its_command removes an_upgrade_keeps_workers removal_stops_the_workers
