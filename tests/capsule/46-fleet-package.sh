#!/bin/bash
# The package archivist-fleet: what a machine says that lacks it, and its installation, upgrade, removal and purge. The database
# cannot be reached, so this requires no PostgreSQL.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

fleet=archivist-fleet.service
membership=/etc/archivist/archivist.conf.d/fleet.conf
# No program listens on this port.
url='postgresql://archivist@127.0.0.1:1/archivist?sslmode=disable'
hint='apt install archivist-fleet'

prepare() {
    plugin testpage <<'SH'
#!/bin/sh
echo page >page.txt
SH
    forget_pages
    configure </dev/null
    start_site
}

clean() {
    in_capsule rm -f $membership
    purge_fleet
    stop_site
    forget_pages
    forget_configuration
}

# become_node: what `archivist fleet join` writes.
become_node() {
    in_capsule sh -c "umask 77; mkdir -p /etc/credstore; echo secret >/etc/credstore/archivist-fleet.password"
    printf '[Fleet]\nDatabase=%s\nName=web1\n' "$url" | in_capsule sh -c "cat >$membership"
    restart
}

version() { in_capsule dpkg-query --show --showformat '${Version}' "$1"; }

one_machine_has_nothing_of_a_fleet() {
    assert_eq "" "$(in_capsule dpkg --listfiles archivist | grep fleet || true)" "files of the package archivist"
    ! in_capsule dpkg-query --show --showformat '${Depends} ${Recommends}' archivist | grep fleet || fail "archivist pulls the fleet in"
    assert_nothing "files of that name" in_capsule find / -ignore_readdir_race -xdev -name 'archivist-fleet*' ! -path '/var/cache/*' ! -path '/var/log/*'
}

every_verb_names_the_package() {
    local verb
    for verb in "init $url" "join $url" status nodes drain leave "backup /root/dump" restored; do
        # shellcheck disable=SC2086 # a verb and its argument
        assert_status 1 archivist fleet $verb
        assert_contains "$output" "$hint" "fleet $verb"
    done
    in_capsule test ! -e $membership || fail "a refused node has a configuration"
}

# It has no ids of its fleet yet. 46-fleet.sh has a node that has some.
a_node_without_the_package_never_archives_alone() {
    become_node
    assert_contains "$(journal --output=cat -u $service -n 20)" "$hint" "the log of the orchestrator"
    assert_status 1 archivist add --plugins testpage "${site}page/1"
    assert_contains "$output" "archivist doctor" "add"
    assert_status 1 archivist doctor
    assert_contains "$output" "$hint" "doctor"
    assert_status 4 archivist status
    assert_contains "$output" "$hint" "status"
    assert_nothing "crawls" query '.[].id' list crawls --local
    in_capsule rm $membership
    restart
}

installs_and_stays_disabled() {
    install_fleet
    assert_eq disabled "$(in_capsule systemctl is-enabled $fleet || true)" "the service"
    assert_eq inactive "$(in_capsule systemctl is-active $fleet || true)" "the service"
    in_capsule id archivist-fleet
    assert_contains "$(in_capsule dpkg --listfiles archivist-fleet)" man8/archivist-fleet.8 "files of the package"
    assert_status 1 archivist fleet status
    assert_contains "$output" "in no fleet" "fleet status"
    assert_system_running
}

both_are_upgraded_together() {
    needs installs_and_stays_disabled
    local deb fleet_deb before
    deb=$(put_deb)
    fleet_deb=$(fleet_deb "$DEB")
    repack "$work/older" '~older' "$DEB" "$fleet_deb"
    capsule cp "$work/older" "$CAPSULE:/var/cache/older"
    apt_in_capsule install --allow-downgrades --no-install-recommends "/var/cache/older/${DEB##*/}" "/var/cache/older/${fleet_deb##*/}"
    in_capsule rm -r /var/cache/older
    become_node
    in_capsule systemctl enable --quiet --now $fleet
    before=$(unit_property $fleet InvocationID)
    assert_contains "$(version archivist) $(version archivist-fleet)" "~older" "the older versions"
    # Neither can be upgraded without the other.
    ! apt_in_capsule install --no-remove "$deb" || fail "archivist was upgraded alone"
    apt_in_capsule install --no-install-recommends "$deb" "$(put_deb "$fleet_deb")"
    assert_eq "$(version archivist)" "$(version archivist-fleet)" "the versions"
    assert_eq "active enabled" "$(in_capsule systemctl is-active $fleet) $(in_capsule systemctl is-enabled $fleet)" "the service"
    [[ $before != "$(unit_property $fleet InvocationID)" ]] || fail "the service runs the older program"
    assert_contains "$(unit_property $fleet StatusText)" "127.0.0.1" "the service knows its database"
    keep deb fleet_deb
}

removal_stops_the_service_alone() {
    needs both_are_upgraded_together
    local before said
    before=$(unit_property $service InvocationID)
    said=$(apt_in_capsule remove archivist-fleet 2>&1)
    assert_contains "$said" "archivist fleet leave" "what a node is told"
    assert_eq "inactive not-found" "$(unit_property $fleet ActiveState) $(unit_property $fleet LoadState)" "the unit"
    assert_eq "active $before" "$(in_capsule systemctl is-active $service) $(unit_property $service InvocationID)" "the orchestrator"
    assert_system_running
    in_capsule test -e /etc/credstore/archivist-fleet.password || fail "a removal must keep the password"
    apt_in_capsule install --no-install-recommends "$(put_deb "$fleet_deb")"
    assert_eq active "$(in_capsule systemctl is-active $fleet)" "the service of a node that is installed again"
}

purge_removes_its_files_and_archivist_goes_on() {
    needs removal_stops_the_service_alone
    local crawl
    apt_in_capsule purge archivist-fleet
    in_capsule test -e $membership || fail "the purge made a node a machine alone"
    in_capsule rm $membership
    one_machine_has_nothing_of_a_fleet
    restart
    crawl=$(add --plugins testpage "${site}page/2")
    wait_for 60 is_over "$crawl"
    assert_eq sealed "$(crawl_status "$crawl")" "a crawl of the machine alone"
}

cases one_machine_has_nothing_of_a_fleet every_verb_names_the_package a_node_without_the_package_never_archives_alone installs_and_stays_disabled \
    both_are_upgraded_together removal_stops_the_service_alone purge_removes_its_files_and_archivist_goes_on
