#!/bin/bash
# A fleet with one node: setup, a crawl over PostgreSQL, and what an administrator can get wrong. tests/fleet has several machines.
# In a short run early, because it takes minutes. Skipped without Debian's postgresql.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"
source "$(dirname "$0")/registries.sh"
source "$(dirname "$0")/postgresql.sh"

fleet=archivist-fleet.service
dump=/root/fleet.dump pages=40
unlimited=/run/systemd/system/archivist-fleet.service.d
policy=/etc/dbus-1/system.d/90-test.conf
reload_policy="busctl call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus ReloadConfig"

prepare() {
    plugin testpage <<'SH'
#!/bin/sh
echo page >page.txt
SH
    configure </dev/null
    start_site
    start_postgresql
    # It is restarted more often than an administrator would.
    in_capsule sh -c "mkdir -p $unlimited && printf '[Unit]\nStartLimitIntervalSec=0\n' >$unlimited/90-test.conf && systemctl daemon-reload"
}

clean() {
    leave_fleet
    stop_site
    forget_pages
    in_capsule sh -c "rm -rf $unlimited $policy; userdel fleet-member 2>/dev/null; rm -f $dump; systemctl daemon-reload"
    forget_configuration
}

status_text() { unit_property $fleet StatusText; }

shows() { [[ $(status_text) == *"$1"* ]]; }

runs_only_in_a_fleet() {
    assert_eq disabled "$(in_capsule systemctl is-enabled $fleet || true)" "the service"
    ! in_capsule systemctl start $fleet 2>/dev/null || fail "the service started without a fleet"
    assert_eq 78 "$(unit_property $fleet ExecMainStatus)" "its exit status"
    assert_contains "$(status_text)" "archivist fleet init" "why it did not start"
    in_capsule systemctl reset-failed $fleet
}

refuses_bad_urls() {
    assert_status 2 archivist fleet init mysql://db.example/x
    assert_status 2 archivist fleet init postgresql://me:secret@db.example/x
    assert_status 2 archivist fleet join "$socket" --name "a b"
    assert_contains "$(archivist fleet join "$socket" --name x 2>&1 || true)" "it has no fleet" "joining without a fleet"
    in_capsule test ! -e /etc/archivist/archivist.conf.d/fleet.conf || fail "a refused node has a configuration"
}

# The certificate of an authority of its own in /tmp/tls/ca.pem, for a server that is 'localhost'.
make_authority() {
    in_capsule sh -e <<'SH'
rm -rf /tmp/tls && install -d -o postgres /tmp/tls && cd /tmp/tls
openssl req -x509 -newkey rsa:2048 -nodes -subj '/CN=test authority' -days 30 -keyout ca.key -out ca.pem 2>/dev/null
openssl req -newkey rsa:2048 -nodes -subj /CN=localhost -keyout server.key -out server.csr 2>/dev/null
touch index.txt
printf '%s\n' '[ca]' 'default_ca=own' '[own]' database=index.txt new_certs_dir=. rand_serial=yes default_md=sha256 policy=any \
    unique_subject=no '[any]' commonName=supplied '[names]' subjectAltName=DNS:localhost >ca.conf
issue() { openssl ca -batch -notext -config ca.conf -extensions names -cert ca.pem -keyfile ca.key -in server.csr "$@" 2>/dev/null; }
issue -startdate 20200101000000Z -enddate 20210101000000Z -out expired.pem
issue -days 30 -out valid.pem
chown postgres server.key && chmod 600 server.key
SH
}

# serve_tls CERTIFICATE
serve_tls() {
    sql postgres "ALTER SYSTEM SET ssl_cert_file = '/tmp/tls/$1'" "ALTER SYSTEM SET ssl_key_file = '/tmp/tls/server.key'" \
        'ALTER SYSTEM SET ssl = on' 'SELECT pg_reload_conf()' >/dev/null
}

stored_authority() { in_capsule sh -c 'cat /etc/credstore/archivist-fleet.ca 2>/dev/null || true'; }

# join_with FILE: joins over TLS; prints what it says.
join_with() { echo right | archivist fleet "${2-join}" "$tls" --name web1 --password-file - --ca "$1" 2>&1 || true; }

expired_certificate_is_refused() { [[ $(join_with /tmp/tls/ca.pem init) == *"its certificate has expired; renew it on the server"* ]]; }

valid_certificate_is_accepted() { [[ $(join_with /tmp/tls/ca.pem init) == *"node 'web1'"* ]]; }

trusts_a_private_authority() {
    local tls=postgresql://tester@localhost:$port/archive
    make_authority
    sql postgres "CREATE ROLE tester LOGIN PASSWORD 'right'" 'ALTER DATABASE archive OWNER TO tester' >/dev/null
    assert_contains "$(join_with /tmp/tls/nothing)" "/tmp/tls/nothing: No such file" "a file that does not exist"
    assert_contains "$(join_with /tmp/tls/server.key)" "/tmp/tls/server.key: the file contains no certificate" "a key instead of a certificate"
    assert_status 2 archivist fleet join "$tls?sslmode=disable" --ca /tmp/tls/ca.pem
    serve_tls expired.pem
    wait_for 10 expired_certificate_is_refused
    assert_eq "" "$(stored_authority)" "the authority after a refusal"
    serve_tls valid.pem
    wait_for 10 valid_certificate_is_accepted
    assert_contains "$(status_text)" "node 'web1', connected to" "the status of the service"
    assert_eq "600 root" "$(in_capsule stat -c '%a %U' /etc/credstore/archivist-fleet.ca)" "the credential"
    assert_eq "$(in_capsule cat /tmp/tls/ca.pem)" "$(stored_authority)" "its content"
    assert_contains "$(echo right | archivist fleet join "$tls" --name web1 --password-file - 2>&1)" "node 'web1'" "joining again without the file"
    assert_contains "$(archivist fleet leave)" "has left the fleet" "what leave says"
    assert_eq "" "$(stored_authority)" "the authority after leaving"
    # The database refuses the name after everything is written.
    sql archive "INSERT INTO archivist.node (name, machine, boot, seen) VALUES ('web1', 'other', '', now())" >/dev/null
    assert_contains "$(join_with /tmp/tls/ca.pem)" "is another machine" "a name of another machine"
    assert_eq "" "$(stored_authority)" "the authority of a node that was refused"
    sql postgres 'ALTER SYSTEM RESET ssl_cert_file' 'ALTER SYSTEM RESET ssl_key_file' 'ALTER SYSTEM RESET ssl' 'SELECT pg_reload_conf()' \
        'DROP DATABASE archive' 'DROP ROLE tester' 'CREATE DATABASE archive OWNER "archivist-fleet"' >/dev/null
}

makes_a_fleet() {
    assert_contains "$(archivist fleet init "$socket" --name web1)" "node 'web1'" "what init says"
    assert_contains "$(status_text)" "node 'web1', connected to" "the status of the service"
    assert_eq enabled "$(in_capsule systemctl is-enabled $fleet)" "the service"
    assert_eq archivist-fleet "$(in_capsule ps -o user:20= -p "$(unit_property $fleet MainPID)")" "its user"
    assert_eq web1 "$(sql archive 'SELECT name FROM archivist.node')" "the nodes"
    assert_eq "" "$(journal --output=cat -u $fleet | grep 'inherited credential' || true)" "credentials that are missing"
}

archives_a_page() {
    needs makes_a_fleet
    wait_for 20 in_outbox 0
    crawl=$(add --plugins testpage "${site}page/1")
    keep crawl
    wait_for 60 page_is_sealed
    assert_eq sealed "$(query '.[0].status' list snapshots "$crawl")" "the page on its node"
    assert_eq succeeded "$(sql archive "SELECT state FROM archivist.result WHERE plugin = 'testpage'")" "the result in the database"
}

in_outbox() { [[ $(in_capsule busctl --json=short call org.archivist1.Fleet /org/archivist1 org.archivist1.FleetNode State | gojq -r '.data[0] | fromjson | .is_sending') == false ]]; }

page_is_sealed() { [[ $(sql archive 'SELECT DISTINCT status FROM archivist.page') == sealed ]]; }

# Nothing but the fleet service may call the interface of the node, whatever the policy of the bus says.
is_closed_to_others() {
    needs makes_a_fleet
    assert_contains "$(call_node Holdings)" "Rejected send message" "a call of root"
    in_capsule sh -e <<SH
echo '<busconfig><policy user="root"><allow send_destination="org.archivist1"/></policy></busconfig>' >$policy
$reload_policy
SH
    local method
    for method in Holdings "Deliver string:{}" Stop Leave Await; do
        # shellcheck disable=SC2086  # a method and its argument
        assert_contains "$(call_node $method)" "only the fleet service" "$method of root with a policy that allows it"
    done
    in_capsule sh -ec "rm $policy; $reload_policy"
    wait_for 20 works
}

# call_node METHOD [TYPE:VALUE…]. busctl would not print why access is denied.
call_node() {
    in_capsule dbus-send --system --print-reply --dest=org.archivist1 /org/archivist1 "org.archivist1.Node.$1" "${@:2}" 2>&1 || true
}

# The service does not rely on the policy of the bus alone.
only_root_administrates() {
    needs makes_a_fleet
    in_capsule sh -e <<SH
id -u fleet-member >/dev/null 2>&1 || useradd --groups archivist fleet-member
echo '<busconfig><policy group="archivist"><allow send_destination="org.archivist1.Fleet"/></policy></busconfig>' >$policy
$reload_policy
SH
    assert_contains "$(as_fleet_member State)" '"name' "the state"
    assert_contains "$(as_fleet_member Drain string:web1 boolean:true)" "only root" "draining"
    assert_contains "$(as_fleet_member Remove string:web1)" "only root" "removing"
    assert_contains "$(as_fleet_member Leave)" "only root" "leaving"
    in_capsule sh -ec "rm $policy; $reload_policy"
    assert_contains "$(as_fleet_member Drain string:web1 boolean:true)" "Rejected send message" "draining without the policy"
    assert_eq f "$(sql archive "SELECT draining FROM archivist.node WHERE name = 'web1'")" "the node"
}

# as_fleet_member METHOD [TYPE:VALUE…]. busctl would not print why access is denied.
as_fleet_member() {
    in_capsule setpriv --reuid fleet-member --regid fleet-member --init-groups dbus-send --system --print-reply \
        --dest=org.archivist1.Fleet /org/archivist1 "org.archivist1.FleetNode.$1" "${@:2}" 2>&1 || true
}

survives_a_restart_of_each() {
    needs archives_a_page
    in_capsule systemctl restart $fleet
    wait_for 20 shows "connected to"
    restart
    wait_for 20 shows "connected to"
    assert_eq active "$(in_capsule systemctl is-active $fleet)" "the service after a restart of the orchestrator"
    in_capsule systemctl restart postgresql.service
    # It notices the restart with its next exchange, and works by its own account until then.
    wait_for 40 has_session
    wait_for 40 works
}

has_session() { [[ $(sql postgres "SELECT count(*) > 0 FROM pg_stat_activity WHERE usename = 'archivist-fleet'") == t ]]; }

works() { [[ $(query '.node.works' fleet status) == true ]]; }

shows_the_fleet() {
    needs makes_a_fleet
    assert_eq "web1 true false" "$(query '.[0] | [.name, .is_connected, .draining]' fleet nodes)" "the nodes"
    assert_contains "$(archivist doctor || true)" "node 'web1' is connected" "what the doctor says"
}

# Faults that an administrator makes; the node works again as soon as they are over.
names_faults_of_the_server() {
    needs makes_a_fleet
    sql postgres 'ALTER DATABASE archive SET default_transaction_read_only = on' >/dev/null
    in_capsule systemctl restart $fleet
    wait_for 20 shows "the database is read-only"
    assert_contains "$(archivist doctor || true)" "use the URL of the primary" "what the doctor says"
    sql postgres 'ALTER DATABASE archive RESET default_transaction_read_only' >/dev/null
    sql archive 'INSERT INTO archivist.migration (version, programs_from) VALUES (99, 99)' >/dev/null
    # A migration ends the sessions of the programs that it excludes.
    sql postgres "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'archivist-fleet'" >/dev/null
    wait_for 20 shows "upgrade archivist on this machine"
    assert_eq sealed "$(query '.[0].status' list snapshots --local "$crawl")" "what the node has, with a schema of the future"
    sql archive 'DELETE FROM archivist.migration WHERE version = 99' >/dev/null
    wait_for 20 shows "connected to"
}

# Over TCP with a password, and TLS with a certificate that has expired.
names_faults_of_the_login() {
    needs makes_a_fleet
    sql postgres "CREATE ROLE tester LOGIN PASSWORD 'right'" 'GRANT "archivist-fleet" TO tester' >/dev/null
    local url=postgresql://tester@127.0.0.1:$port/archive
    assert_contains "$(echo wrong | archivist fleet join "$url?sslmode=disable" --password-file - 2>&1 || true)" "leave it first" "a second fleet"
    assert_contains "$(check wrong "$url?sslmode=disable")" "wrong password for tester" "a wrong password"
    assert_eq "" "$(check right "$url?sslmode=disable")" "the right password"
    assert_contains "$(check right "$url")" "certificate" "a certificate that no authority has issued"
    sql postgres 'REVOKE "archivist-fleet" FROM tester' 'DROP ROLE tester' >/dev/null
}

# check PASSWORD URL: what the program says as the user of the service.
check() { echo "$1" | in_capsule runuser -u archivist-fleet -- /usr/lib/archivist/archivist-fleet check "$2" 0 0 2>&1 || true; }

refuses_a_name_of_another_machine() {
    needs makes_a_fleet
    sql archive "INSERT INTO archivist.node (name, machine, boot, seen) VALUES ('web9', 'other', '', now())" >/dev/null
    in_capsule sed -i s/Name=web1/Name=web9/ /etc/archivist/archivist.conf.d/fleet.conf
    in_capsule systemctl restart $fleet
    wait_for 20 shows "is another machine: choose another name"
    in_capsule sed -i s/Name=web9/Name=web1/ /etc/archivist/archivist.conf.d/fleet.conf
    in_capsule systemctl restart $fleet
    wait_for 20 shows "connected to"
    assert_contains "$(archivist fleet leave web9 2>&1 || true)" "was seen a moment ago" "removing a node that lives"
    sql archive "UPDATE archivist.node SET seen = now() - interval '1 day' WHERE name = 'web9'" >/dev/null
    assert_status 0 archivist fleet leave web9
    assert_eq web1 "$(query 'map(.name)' fleet nodes)" "the nodes"
}

duration_of_leases_is_a_setting() {
    needs makes_a_fleet
    in_capsule sed -i '/^Name=/aLeaseSec=2min' /etc/archivist/archivist.conf.d/fleet.conf
    in_capsule systemctl restart $fleet
    wait_for 20 leases_last 120000
    # Without the setting, the duration stays until a node has one.
    in_capsule sed -i /LeaseSec=/d /etc/archivist/archivist.conf.d/fleet.conf
    in_capsule systemctl restart $fleet
    wait_for 20 shows "connected to"
    leases_last 120000 || fail "the duration of leases changed"
    sql archive 'UPDATE archivist.fleet SET lease_ms = DEFAULT' >/dev/null
}

leases_last() { [[ $(sql archive 'SELECT lease_ms FROM archivist.fleet') == "$1" ]]; }

drains_and_resumes() {
    needs archives_a_page
    assert_status 0 archivist fleet drain
    assert_eq true "$(query '.[0].draining' fleet nodes)" "whether the node drains"
    wait_for 30 no_crawl_is_open
    assert_status 0 archivist fleet drain --undo web1
    crawl=$(add --plugins testpage "${site}page/2")
    wait_for 60 page_is_sealed
    assert_eq 1 "$(archivist fleet drain web7 >/dev/null 2>&1 || echo $?)" "draining a node that does not exist"
}

no_crawl_is_open() { [[ $(query 'map(select(.ended_at == null)) | length' list crawls --local) == 0 ]]; }

# Crawls wait for the package: the machine never archives them alone.
waits_while_its_package_is_removed() {
    needs archives_a_page
    local waiting
    in_capsule dpkg --remove archivist-fleet
    waiting=$(add --plugins testpage "${site}page/5")
    assert_status 4 archivist why "$waiting"
    assert_contains "$output" "apt install archivist-fleet" "why"
    assert_contains "$(archivist doctor || true)" "apt install archivist-fleet" "doctor"
    restart
    assert_nothing "pages of the crawl on this machine" query '.[].id' list snapshots --local "$waiting"
    install_fleet
    wait_for 60 has_sealed "$waiting" 1
}

# With the commands of archivist-backup(7). Hosts are leased again after the duration of a lease.
comes_back_after_its_database_was_lost() {
    needs archives_a_page
    local many late before
    sql archive 'UPDATE archivist.fleet SET lease_ms = 5000' >/dev/null
    many=$(in_capsule sh -c "seq -f ${site}page/1%g $pages | archivist add --json --plugins testpage -" | evaluate '.crawl')
    wait_for 60 has_sealed "$many" 5
    assert_eq "backed up the database of the fleet to '$dump'" "$(archivist fleet backup $dump)" "what backup says"
    assert_eq "600 root" "$(in_capsule stat -c '%a %U' $dump)" "the file of the backup"
    wait_for 120 has_sealed "$many" $pages
    late=$(add --plugins testpage "${site}page/3")
    wait_for 60 has_sealed "$late" 1
    before=$(files)
    sql postgres 'DROP DATABASE archive WITH (FORCE)' 'CREATE DATABASE archive OWNER "archivist-fleet"' >/dev/null
    in_capsule sh -c "runuser -u archivist-fleet -- pg_restore --clean --if-exists --no-owner --single-transaction --dbname=$socket <$dump"
    ! has_sealed "$many" $pages || fail "all pages were archived before the backup"
    assert_nothing "the crawl that is in no backup" sql archive "SELECT id FROM archivist.crawl WHERE id = ${late#c}"
    wait_for 60 shows "went back to an earlier state"
    assert_contains "$(archivist fleet restored)" "is declared restored" "what restored says"
    wait_for 60 has_sealed "$many" $pages
    wait_for 60 has_sealed "$late" 1
    crawl=$(add --plugins testpage "${site}page/4")
    wait_for 60 has_sealed "$crawl" 1
    assert_nothing "pages that are there twice" sql archive "SELECT url FROM archivist.page GROUP BY crawl, url HAVING count(*) > 1"
    assert_eq "" "$(comm -23 <(echo "$before") <(files))" "files of earlier pages that changed"
    sql archive 'UPDATE archivist.fleet SET lease_ms = DEFAULT' >/dev/null
}

# has_sealed CRAWL COUNT
has_sealed() { (($(sql archive "SELECT count(*) FROM archivist.page WHERE crawl = ${1#c} AND status = 'sealed'") >= $2)); }

# Of pages, with their SHA-256.
files() { in_capsule sh -c "cd /var/lib/archivist/archive && find . -path './[0-9]*/*/s[0-9]*' -type f -exec sha256sum {} +" | LC_ALL=C sort; }

leaves_the_fleet() {
    needs archives_a_page
    assert_contains "$(archivist fleet leave)" "has left the fleet" "what leave says"
    assert_eq "disabled inactive" "$(in_capsule systemctl is-enabled $fleet || true) $(in_capsule systemctl is-active $fleet || true)" "the service"
    in_capsule test ! -e /etc/archivist/archivist.conf.d/fleet.conf || fail "the configuration is left"
    assert_nothing "the nodes" sql archive 'SELECT name FROM archivist.node WHERE name IS NOT NULL'
    assert_eq sealed "$(query '.[0].status' list snapshots "$crawl")" "the page of the fleet on this machine"
    crawl=$(add --plugins testpage "${site}page/3")
    wait_for 60 is_over "$crawl"
    assert_contains "$(archivist fleet join "$socket" 2>&1 || true)" "the ids of the fleet begin at c" "joining with crawls of the same ids"
}

cases runs_only_in_a_fleet refuses_bad_urls trusts_a_private_authority makes_a_fleet archives_a_page is_closed_to_others only_root_administrates survives_a_restart_of_each shows_the_fleet \
    names_faults_of_the_server names_faults_of_the_login refuses_a_name_of_another_machine duration_of_leases_is_a_setting drains_and_resumes waits_while_its_package_is_removed comes_back_after_its_database_was_lost leaves_the_fleet
