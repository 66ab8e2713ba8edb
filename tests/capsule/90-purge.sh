#!/bin/bash
# Removing ends what runs, purging takes units and configuration, and only an explicit yes takes the archive.
# Last of all: the package is gone afterwards.
source "$(dirname "$0")/lib.sh"

unit=archivist-purge-test.service
kept=/var/lib/archivist/archive/kept-by-purge

install() { apt_in_capsule install "$deb"; }

removal_ends_what_runs() {
    install
    in_capsule systemd-run --quiet --unit=$unit --slice=archivist-crawl.slice sleep infinity
    in_capsule systemctl --quiet enable --now archivist-retry.timer
    in_capsule touch $kept
    apt_in_capsule remove archivist
    # Without --all: links to the removed service are kept until the purge, and are no units.
    assert_eq "" "$(in_capsule systemctl list-units --plain --no-legend 'archivist*')" "units after the removal"
    in_capsule test -e /etc/archivist/archivist.conf || fail "a removal must keep the configuration"
    assert_system_running
}

purge_keeps_the_archive() {
    needs removal_ends_what_runs
    install
    apt_in_capsule purge archivist
    in_capsule test -e $kept || fail "a purge must keep the archive"
    assert_nothing_left
}

purge_deletes_the_archive_when_told() {
    install
    echo 'archivist archivist/purge-archive boolean true' | in_capsule debconf-set-selections
    apt_in_capsule purge archivist
    ! in_capsule test -e /var/lib/archivist || fail "a purge that was told to must delete /var/lib/archivist"
    assert_nothing_left
}

assert_nothing_left() {
    local place
    ! in_capsule test -e /etc/archivist || fail "/etc/archivist is left"
    assert_eq "" "$(in_capsule systemctl list-unit-files --no-legend 'archivist*')" "unit files"
    for place in /etc/systemd /usr/lib/systemd /usr/share/dbus-1 /usr/lib/sysusers.d /usr/lib/tmpfiles.d /var/lib/systemd; do
        assert_eq "" "$(in_capsule find $place -name '*archivist*' ! -path '/var/lib/systemd/catalog/*')" "files in $place"
    done
    ! in_capsule sh -c 'command -v archivist' || fail "the program is left"
    assert_eq "" "$(files)" "files of that name"
    assert_eq "" "$(in_capsule debconf-show archivist)" "answers of debconf"
    assert_system_running
}

# Except for the archive and what apt and this test keep.
files() {
    in_capsule find / -xdev -name '*archivist*' ! -path '/var/cache/*' ! -path '/var/lib/archivist*' ! -path '/var/lib/apt/*' \
        ! -path '/var/log/*' ! -path '/var/lib/systemd/catalog/*' ! -path '/tmp/*'
}

# Debian's packages keep them (systemd-cron, postgresql): another user must not get the files of the archive with their number. They have
# no password, shell or home directory of their own.
users_stay_and_are_locked() {
    local user line
    for user in archivist archivist-hook archivist-hook-1 archivist-hook-16 archivist-network; do
        line=$(in_capsule getent passwd $user) || fail "user $user is gone"
        assert_contains "$line" /nologin "shell of $user"
        [[ $(in_capsule getent shadow $user) == "$user:!"* ]] || fail "user $user has a password"
    done
}

prepare() { deb=$(put_deb); }

cases removal_ends_what_runs purge_keeps_the_archive purge_deletes_the_archive_when_told users_stay_and_are_locked
