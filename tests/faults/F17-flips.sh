#!/bin/bash
# F17: random bytes flipped in the database, in its write-ahead log and in the configuration: the orchestrator refuses with a
# hint, or recovers and reports; never silently. Silent means: it works without a message on a database that fails SQLite's
# integrity_check, or on a log that lost more than the last transaction. A flip that makes another valid document, such as a
# letter of a title, cannot be detected. A short run is always the same; SEED=N repeats a full one.
source "$(dirname "$0")/lib.sh"

COUNT=${COUNT-$(times 24 400)} SEED=${SEED-$(times 1 $RANDOM)}
data=/var/lib/archivist

clean() {
    # Restores the database.
    in_capsule sh -c "cd $data; if [ -e /srv/flip/closed ]; then
            systemctl stop $service; rm -f archivist.sqlite3-*; cp /srv/flip/closed archivist.sqlite3
        fi; rm -rf /srv/flip archivist.sqlite3-wal.damaged"
    forget_configuration
}

prepare() {
    put_tool
    capsule cp "$ROOT/tests/faults/flip.py" "$CAPSULE:/opt/faults/flip.py"
    hooks_with_codes 2
    configure <<'END'
[Orchestrator]
WorkersMax=8
RetrySec=1s
IdleTimeoutSec=10min
END
}

no_flip_is_silent() {
    local verdict
    finish "$(pages 10 flips testcode)"
    # The files after SIGKILL, and after a normal exit.
    in_capsule sh -c "mkdir -p /srv/flip; systemctl kill --signal=STOP $service; cd $data
        cp archivist.sqlite3 /srv/flip/log; cp archivist.sqlite3-wal /srv/flip/log-wal
        systemctl kill --signal=CONT $service; systemctl stop $service; cp archivist.sqlite3 /srv/flip/closed"
    verdict=$(in_capsule python3 /opt/faults/flip.py "$SEED" "$COUNT")
    assert_contains "$verdict " " silent=0 " "flips of seed $SEED"
    figure "F17 flips in database, log and configuration=$COUNT, seed $SEED: $verdict"
}

# While the database is damaged, commands print why and what to do, and start no orchestrator, which would find the same again.
damage_is_reported_once() {
    local since said starts
    in_capsule sh -c "systemctl stop $service; cp $data/archivist.sqlite3 /srv/flip/whole
        dd if=/dev/urandom of=$data/archivist.sqlite3 bs=4096 seek=3 count=1 conv=notrunc 2>/dev/null"
    since=$(in_capsule journalctl --quiet -n 0 --show-cursor | sed -n 's/.*cursor: //p')
    for _ in 1 2 3 4 5; do
        said=$(in_capsule archivist status 2>&1 || true)
        assert_contains "$said" "$data/archivist.sqlite3' is damaged" "archivist status"
        assert_contains "$said" "sqlite3 new.sqlite3" "the command to recover it"
    done
    assert_contains "$(in_capsule archivist doctor || true)" "is damaged" "archivist doctor"
    assert_eq failed "$(in_capsule systemctl is-active $service || true)" "state of the service"
    said=$(in_capsule journalctl --quiet --output=cat -u $service --after-cursor="$since")
    assert_eq 1 "$(grep -c "is damaged" <<<"$said")" "messages about the damage"
    starts=$(in_capsule journalctl --quiet --output=cat -u $service --after-cursor="$since" JOB_TYPE=start | grep -c ^Starting)
    assert_eq 1 "$starts" "starts of the orchestrator"
    in_capsule sh -c "cp /srv/flip/whole $data/archivist.sqlite3"
    assert_status 0 archivist status
    figure "F17 starts and messages of an orchestrator with a damaged database, in 6 commands=1"
}

cases no_flip_is_silent damage_is_reported_once
