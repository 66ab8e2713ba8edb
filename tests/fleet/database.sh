# shellcheck shell=bash disable=SC2154
# A PostgreSQL of Debian in a network namespace: it can be killed, its disk filled, and replaced by a standby.
# $lab is the directory of the lab and $network the name of its network, see lab.sh.

# Two servers, one for each of the namespaces `db` and `spare`; the file `primary` names the one that clients use by this address.
DATABASE_ADDRESS=10.77.0.50
DATABASE_DISK=400M
DATABASE_SECONDS=60

network() { "$ROOT/tests/machine/network" "$@"; }

programs() { find /usr/lib/postgresql -maxdepth 2 -name bin | sort -V | tail -n 1; }

# as_postgres SERVER COMMAND…: runs a command as the user of the servers, in the namespace of a server.
as_postgres() {
    local server=$1
    shift
    network run "$network" "$server" setpriv --reuid=postgres --regid=postgres --clear-groups env --chdir=/ "PATH=$(programs):$PATH" "$@"
}

# An own file system for the files of a server, so that a test can fill it.
database_disk() {
    ! mountpoint --quiet "$lab/$1" || umount "$lab/$1"
    mkdir -p "$lab/$1" "$lab/socket.$1"
    mount -t tmpfs -o "size=$DATABASE_DISK,mode=700,uid=$(id -u postgres),gid=$(id -g postgres)" tmpfs "$lab/$1"
    chown postgres: "$lab/socket.$1"
}

# database_create PASSWORD: makes the files of the first server, whose superuser is postgres and whose user is archivist.
database_create() {
    database_disk db
    as_postgres db initdb --pgdata="$lab/db/data" --auth=trust --wal-segsize=1 --locale=C.UTF-8 --no-sync >"$lab/db.log"
    cat >>"$lab/db/data/postgresql.conf" <<'CONF'
listen_addresses = '*'
shared_buffers = 64MB
min_wal_size = 8MB
max_wal_size = 32MB
wal_keep_size = 64MB
log_line_prefix = '%m [%p] '
CONF
    cat >"$lab/db/data/pg_hba.conf" <<'CONF'
local all all trust
host all all 10.77.0.0/16 scram-sha-256
host replication postgres 10.77.0.0/16 trust
CONF
    network address "$network" db $DATABASE_ADDRESS
    echo db >"$lab/primary"
    database_start db
    sql_on db postgres "CREATE ROLE archivist LOGIN PASSWORD '$1'" "CREATE DATABASE archivist OWNER archivist"
}

# database_start SERVER: returns when it accepts connections.
database_start() {
    as_postgres "$1" setsid postgres -D "$lab/$1/data" -k "$lab/socket.$1" </dev/null >>"$lab/$1.log" 2>&1 9>&- &
    disown
    database_wait "$1"
}

database_wait() {
    local deadline=$((EPOCHSECONDS + DATABASE_SECONDS))
    until database_accepts "$1"; do
        ((EPOCHSECONDS < deadline)) || { tail -n 20 "$lab/$1.log" >&2; return 1; }
        sleep 0.1
    done
}

database_accepts() { as_postgres "$1" pg_isready --quiet --host="$lab/socket.$1"; }

database_runs() { [[ -n $(ip netns pids "archivist-net-$network.$1") ]]; }

database_kill() { network kill "$network" "$1"; }

# Until database_empty, nothing can be written to its disk.
database_fill() { dd if=/dev/zero of="$lab/$1/ballast" bs=64k status=none 2>/dev/null || true; }

database_empty() { rm -f "$lab/$1/ballast"; }

# Prints the server that is not the primary.
database_other() { [[ $(<"$lab/primary") == db ]] && echo spare || echo db; }

# Makes the other server a standby, without the data that it had.
database_standby() {
    local server
    server=$(database_other)
    database_kill "$server"
    database_disk "$server"
    as_postgres "$server" pg_basebackup --host=$DATABASE_ADDRESS --username=postgres --pgdata="$lab/$server/data" \
        --write-recovery-conf --checkpoint=fast
    database_start "$server"
}

# The standby becomes the primary, and the address of the database moves to it.
database_promote() {
    local server
    server=$(database_other)
    as_postgres "$server" pg_ctl promote --silent --pgdata="$lab/$server/data" --wait
    network address "$network" "$server" $DATABASE_ADDRESS
    echo "$server" >"$lab/primary"
}

# sql_on SERVER DATABASE STATEMENT…: prints the rows, columns separated by blanks.
sql_on() {
    local server=$1 database=$2 statement words=()
    shift 2
    for statement; do words+=(--command "$statement"); done
    as_postgres "$server" psql --host="$lab/socket.$server" --dbname="$database" --no-psqlrc --quiet --tuples-only --no-align \
        --field-separator=' ' --set=ON_ERROR_STOP=1 "${words[@]}"
}

# database_dump FILE, database_restore FILE: on the primary, with the commands of archivist-backup(7).
database_dump() {
    local primary
    primary=$(<"$lab/primary")
    as_postgres "$primary" pg_dump --format=custom --schema=archivist --no-owner --host="$lab/socket.$primary" --username=archivist \
        --dbname=archivist >"$1"
}

database_restore() {
    local primary
    primary=$(<"$lab/primary")
    as_postgres "$primary" pg_restore --clean --if-exists --no-owner --single-transaction --host="$lab/socket.$primary" \
        --username=archivist --dbname=archivist <"$1"
}
