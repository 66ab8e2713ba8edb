#!/bin/bash
# apt makes a working, enabled service of it; installing it again ends no running work.
# In a short run on every release.
source "$(dirname "$0")/lib.sh"

service=archivist-orchestrator.service
unit=archivist-install-test.service

installs() {
    apt_in_capsule install "$deb"
    assert_eq enabled "$(in_capsule systemctl is-enabled $service)" "enabled after the installation"
    assert_eq active "$(in_capsule systemctl is-active $service)" "active after the installation"
    assert_eq active "$(in_capsule systemctl is-active archivist.service)" "its alias"
    assert_system_running
}

has_users_and_directories() {
    needs installs
    in_capsule id archivist
    assert_contains "$(in_capsule id archivist)" "(archivist-hook)" "groups of the workers' user"
    in_capsule id archivist-hook
    assert_eq "root 755" "$(in_capsule stat -c '%U %a' /var/lib/archivist)" "/var/lib/archivist"
    assert_eq "archivist" "$(in_capsule stat -c %U /var/lib/archivist/archive)" "owner of the archive"
}

# A transient unit where the workers and hooks live, as the orchestrator would start it.
reinstall_keeps_work() {
    needs installs
    local before after orchestrator
    in_capsule systemd-run --quiet --unit=$unit --slice=archivist-crawl.slice sleep infinity
    before=$(unit_property $unit InvocationID)
    orchestrator=$(unit_property $service InvocationID)
    apt_in_capsule install --reinstall "$deb"
    after=$(unit_property $unit InvocationID)
    assert_eq active "$(in_capsule systemctl is-active $unit)" "running work after a reinstallation"
    assert_eq "$before" "$after" "invocation of the running work"
    assert_eq active "$(in_capsule systemctl is-active $service)" "the orchestrator after a reinstallation"
    [[ $orchestrator != "$(unit_property $service InvocationID)" ]] || fail "the orchestrator was not restarted"
    in_capsule systemctl stop $unit
    assert_system_running
}

the_bus_starts_it() {
    needs installs
    in_capsule systemctl stop $service
    in_capsule archivist status
    assert_eq active "$(in_capsule systemctl is-active $service)" "the orchestrator after a call"
    assert_eq "archivist.service dbus-org.archivist1.service" \
        "$(in_capsule find /etc/systemd/system -maxdepth 1 -name '*archivist*.service*' -printf '%f\n' | sort | xargs)" "links of an enabled unit"
}

explains_its_messages() {
    needs installs
    assert_contains "$(in_capsule journalctl --list-catalog)" "archivist:" "the journal's catalog"
}

# systemd 259 and newer start units without their filters of system calls if this library is missing, and do not say so.
depends_on_filters() {
    needs installs
    assert_contains "$(in_capsule dpkg-query --show --showformat='${Depends}' archivist)" libseccomp2 "dependencies"
}

# It runs before every hook; the dynamic loader would take half of its time.
launcher_requires_no_dynamic_loader() {
    needs installs
    assert_eq "statically linked" "$(in_capsule ldd /usr/lib/archivist/archivist-hook-exec | xargs)" "ldd of the launcher"
}

prepare() { deb=$(put_deb); }

cases installs has_users_and_directories reinstall_keeps_work the_bus_starts_it explains_its_messages depends_on_filters \
    launcher_requires_no_dynamic_loader
