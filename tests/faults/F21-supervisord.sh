#!/bin/bash
# F21: the same workers under a pool and under supervisord from PyPI: time until a dead worker runs again, processes left after a
# stop, idle CPU time. Only processes that a pool leaves are judged.
source "$(dirname "$0")/lib.sh"

WORKERS=8 ROUNDS=10 IDLE=60 STATE=/run/test-compare POOL=testcompare

[[ ${EXTENT-short} == full ]] || skip "supervisord beside pools: only in the full run"

clean() {
    in_capsule sh -c "archivist pool remove $POOL 2>/dev/null; [ ! -e $STATE/pid ] || kill \$(cat $STATE/pid); rm -rf $STATE /opt/supervisor" || true
    purge_pools
}

prepare() {
    install_pools
    python3 -m pip install --quiet --target "$work/lib" supervisor setuptools'<81' 2>"$work/log" || skip "no supervisor from PyPI: $(tail -n 1 "$work/log")"
    capsule cp "$work/lib" "$CAPSULE:/opt/supervisor"
    in_capsule sh -c "mkdir -p $STATE /opt/pools"
    capsule cp "$ROOT/tests/capsule/pools/worker.py" "$CAPSULE:/opt/pools/worker.py"
    # Each has a child that leaves its session.
    in_capsule sh -c "cat >/opt/pools/family.sh && chmod 755 /opt/pools/family.sh" <<'SH'
#!/bin/sh
setsid sleep 7777 &
exec sleep 8888
SH
    in_capsule sh -c "cat >$STATE/supervisord.conf" <<END
[supervisord]
nodaemon=true
logfile=/dev/null
logfile_maxbytes=0
pidfile=$STATE/pid
[unix_http_server]
file=$STATE/socket
[rpcinterface:supervisor]
supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
[supervisorctl]
serverurl=unix://$STATE/socket
[program:family]
command=/opt/pools/family.sh
process_name=%(process_num)s
numprocs=$WORKERS
startsecs=0
stopwaitsecs=2
END
}

supervisorctl() { in_capsule env PYTHONPATH=/opt/supervisor python3 -m supervisor.supervisorctl -c $STATE/supervisord.conf "$@"; }

# Milliseconds from the kill of a worker until its successor runs, mean of $ROUNDS.
restart_time() {
    in_capsule python3 - "$WORKERS" "$ROUNDS" <<'PY'
import os, signal, sys, time
workers, rounds = map(int, sys.argv[1:])
def pids():
    found = set()
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/cmdline", "rb") as file:
                if file.read() == b"sleep\x008888\x00":
                    found.add(int(name))
        except OSError:
            pass
    return found
took = []
for _ in range(rounds):
    before = pids()
    os.kill(min(before), signal.SIGKILL)
    began = time.monotonic()
    deadline = began + 60
    while len(pids() - before) == 0:
        assert time.monotonic() < deadline, "nobody came back"
        time.sleep(0.005)
    took.append(time.monotonic() - began)
    while len(pids()) < workers:
        time.sleep(0.02)
print(round(1000 * sum(took) / len(took)))
PY
}

orphans() { in_capsule sh -c "pgrep -c -x -f 'sleep (7777|8888)'" || true; }

end_orphans() { in_capsule sh -c "pgrep -x -f 'sleep (7777|8888)' | xargs -r kill -KILL" || true; }

# CPU time of a process with one thread, in microseconds.
cpu() { in_capsule awk '{ print int($1 / 1000) }' "/proc/$1/schedstat"; }

family_runs() { [[ $(in_capsule pgrep -c -x -f 'sleep 8888') == "$WORKERS" ]]; }

supervisord() {
    local theirs before idle back left
    in_capsule systemd-run --quiet --unit=test-supervisord --collect --setenv=PYTHONPATH=/opt/supervisor --property=KillMode=process \
        python3 -m supervisor.supervisord -c $STATE/supervisord.conf
    wait_for 20 family_runs
    theirs=$(in_capsule cat $STATE/pid)
    before=$(cpu "$theirs")
    in_capsule sleep $IDLE
    idle=$(($(cpu "$theirs") - before))
    back=$(restart_time)
    supervisorctl stop all >/dev/null
    left=$(orphans)
    in_capsule systemctl stop test-supervisord.service
    end_orphans
    figure "F21 supervisord: back after $back ms, left after a stop=$left, CPU in $IDLE s idle=$idle µs"
}

a_pool() {
    local before idle back ours
    archivist pool add $POOL -n $WORKERS --set RestartSec=100ms --set RestartMaxSec=100ms --now -- /opt/pools/family.sh
    wait_for 20 family_runs
    before=$(cpu 1)
    in_capsule sleep $IDLE
    idle=$(($(cpu 1) - before))
    back=$(restart_time)
    archivist pool stop $POOL
    ours=$(orphans)
    figure "F21 archivist pool (RestartSec=100ms): back after $back ms, left after a stop=$ours, CPU of PID 1 in $IDLE s idle=$idle µs"
    assert_eq 0 "$ours" "what the pool left behind"
}

cases supervisord a_pool
