# shellcheck shell=bash
# PostgreSQL of Debian in the capsule, with an empty database for a fleet, and the package archivist-fleet.

# start_postgresql: installs the fleet service and starts the server, and sets $socket to the URL of the database, $port to its port and $cluster to the unit of the server.
start_postgresql() {
    install_fleet
    in_capsule test -e /usr/bin/pg_lsclusters || {
        may_skip in_capsule apt-get -q update
        may_skip apt_in_capsule install --no-install-recommends postgresql
    }
    local version name
    read -r version name _ <<<"$(in_capsule pg_lsclusters --no-header)"
    # Capsules share the network, and their clusters the number of the port.
    port=$((20000 + $$ % 10000))
    in_capsule pg_conftool "$version" "$name" set port $port
    in_capsule systemctl restart postgresql.service
    wait_for 30 sql postgres 'SELECT 1' >/dev/null
    in_capsule rm -rf /etc/archivist/archivist.conf.d/fleet.conf
    sql postgres 'DROP DATABASE IF EXISTS archive' 'DROP ROLE IF EXISTS "archivist-fleet"' \
        'CREATE ROLE "archivist-fleet" LOGIN' 'CREATE DATABASE archive OWNER "archivist-fleet"' \
        'GRANT pg_monitor TO "archivist-fleet"' >/dev/null
    # shellcheck disable=SC2034 # for the script that sources this
    socket=postgresql://%2Frun%2Fpostgresql:$port/archive
    # shellcheck disable=SC2034 # the same
    cluster=postgresql@$version-$name.service
}

# leave_fleet: removes the node and the package, and stops the server.
leave_fleet() {
    in_capsule sh -c "systemctl disable --quiet --now archivist-fleet.service
        rm -f /etc/archivist/archivist.conf.d/fleet.conf /etc/credstore/archivist-fleet.*
        systemctl stop postgresql.service; systemctl reset-failed archivist-fleet.service" 2>/dev/null || true
    purge_fleet
}

# sql DATABASE STATEMENT…: prints the rows.
sql() {
    local database=$1 statement arguments=()
    shift
    for statement; do arguments+=(--command "$statement"); done
    in_capsule runuser -u postgres -- psql --quiet --tuples-only --no-align --dbname "$database" "${arguments[@]}"
}
