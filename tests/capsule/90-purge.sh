#!/bin/bash
# Removing ends what runs, purging takes units and the configuration of the package, and only an explicit yes takes the archive.
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
    assert_nothing "units after the removal" in_capsule systemctl list-units --plain --no-legend 'archivist*'
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

# Prints, for each file of the administrator, its path. Some are next to files of the package.
own_files() {
    printf '%s\n' /etc/archivist/plugins/own/{config.json,on_Snapshot__50_own.sh} /etc/archivist/{own.watch,own.pool,own.pool.d/90-scale.conf} \
        /etc/archivist/archivist.conf.d/{own,50-local}.conf /etc/archivist/archivist.conf.mine /run/archivist/{own.watch,archivist.conf.d/own.conf}
}

# put_file PATH TEXT
put_file() { in_capsule sh -c 'mkdir -p "$(dirname "$1")" && printf "%s\n" "$2" >"$1"' sh "$1" "$2"; }

purge_keeps_files_of_the_administrator() {
    local said file written
    written="# Written by 'archivist config --set', which keeps nothing but assignments."
    install
    for file in $(own_files); do put_file "$file" "$written $file"; done
    # Files that a program of the package wrote for itself, and an empty directory.
    put_file /etc/archivist/archivist.conf.d/fleet.conf "# Written by 'archivist fleet', and removed by 'archivist fleet leave'."
    put_file /run/archivist/run_1.pool "# Written by archivist pool; see archivist.pool(5)"
    put_file /run/archivist/input/7 "a launch"
    in_capsule mkdir -p /etc/archivist/empty
    said=$(apt_in_capsule purge archivist 2>&1)
    for file in $(own_files); do
        assert_eq "$written $file" "$(in_capsule cat "$file")" "content of $file"
        assert_contains "$said" "  $file" "names of kept files"
    done
    assert_eq "$(own_files | sort)" "$(in_capsule find /etc/archivist /run/archivist ! -type d | sort)" "files after the purge"
    assert_nothing "empty directories" in_capsule find /etc/archivist -type d -empty
    in_capsule test -e $kept || fail "a purge must keep the archive"
    # The next installation leaves them as they are.
    install
    for file in $(own_files); do assert_eq "$written $file" "$(in_capsule cat "$file")" "content of $file"; done
    in_capsule sh -c 'rm -r /etc/archivist/plugins /etc/archivist/own* /etc/archivist/archivist.conf.d/* /etc/archivist/archivist.conf.mine'
    in_capsule rm -r /run/archivist/own.watch /run/archivist/archivist.conf.d
    apt_in_capsule purge archivist
    assert_nothing_left
}

many_kept_files_are_counted() {
    local said
    install
    in_capsule sh -c 'mkdir /etc/archivist/plugins && cd /etc/archivist/plugins && touch $(seq -w 100)'
    said=$(apt_in_capsule purge archivist 2>&1)
    assert_contains "$said" "  /etc/archivist/plugins/020" "the first"
    assert_contains "$said" "  and 80 more" "the others"
    assert_eq 100 "$(in_capsule sh -c 'ls /etc/archivist/plugins | wc -l')" "kept files"
    in_capsule rm -r /etc/archivist
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
        assert_nothing "files in $place" in_capsule find $place -name '*archivist*' ! -path '/var/lib/systemd/catalog/*'
    done
    ! in_capsule sh -c 'command -v archivist' || fail "the program is left"
    assert_nothing "files of that name" files
    assert_eq "" "$(in_capsule debconf-show archivist)" "answers of debconf"
    assert_system_running
}

# Except for the archive and what apt and this test keep.
files() {
    in_capsule find / -ignore_readdir_race -xdev -name '*archivist*' ! -path '/var/cache/*' ! -path '/var/lib/archivist*' ! -path '/var/lib/apt/*' \
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

# Without the files of earlier scripts, which a purge would keep.
prepare() {
    deb=$(put_deb)
    in_capsule sh -c 'find /etc/archivist /run/archivist/*.d -mindepth 1 ! -path /etc/archivist/archivist.conf -delete 2>/dev/null || true'
}

cases removal_ends_what_runs purge_keeps_the_archive purge_keeps_files_of_the_administrator many_kept_files_are_counted \
    purge_deletes_the_archive_when_told users_stay_and_are_locked
