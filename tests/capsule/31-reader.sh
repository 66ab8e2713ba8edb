#!/bin/bash
# The wall around processes that read foreign files: reader/attempts takes the place of the parser, for root and for a user, and tries
# what a file that has taken over the parser would do. Outside of the sandbox it can do all of this.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

state=/var/lib/archivist
attempts=/usr/local/lib/test-attempts
drop_ins=/run/systemd/system/archivist-import-.service.d
search_drop_ins=/run/systemd/system/archivist-search-.service.d
name=testuser

clean() {
    in_capsule rm -rf $attempts $drop_ins $search_drop_ins /root/test-list /root/test.wacz $state/lib/bin/planted /usr/planted
    in_capsule systemctl daemon-reload
    in_capsule loginctl terminate-user $name 2>/dev/null || true
    in_capsule loginctl disable-linger $name 2>/dev/null || true
    in_capsule systemctl stop "user@$uid.service" 2>/dev/null || true
    in_capsule userdel --remove $name 2>/dev/null || true
    forget_configuration
}

prepare() {
    configure </dev/null
    plugin testkept <<'SH'
#!/bin/sh
echo kept >kept.txt
SH
    restart
    assert_status 0 archivist add --wait --plugins testkept http://kept.test/other
    other=$(query 'max_by(.id | number).id' list snapshots)
    other_page=$(query 'max_by(.id | number).directory' list snapshots)
    assert_status 0 archivist add --wait --plugins testkept http://kept.test/
    page=$(query 'max_by(.id | number).directory' list snapshots)
    id=$(query 'max_by(.id | number).id' list snapshots)
    in_capsule mkdir -p $state/lib/bin
    in_capsule chown archivist-hook:archivist-hook $state/lib $state/lib/bin
    capsule cp "$(dirname "$0")/reader/attempts" "$CAPSULE:$attempts"
    in_capsule sh -c "echo http://a.test/ >/root/test-list; chmod 755 $attempts; mkdir -p $drop_ins /etc/systemd/user
        printf '[Service]\nEnvironment=PAGE=$page\nExecStart=\nExecStart=$attempts\n' >$drop_ins/90-test.conf; systemctl daemon-reload"
    in_capsule useradd --create-home --shell /bin/bash $name
    uid=$(in_capsule id -u $name)
    in_capsule loginctl enable-linger $name
    wait_for 20 has_unit "user@$uid.service"
    wait_for 20 in_capsule test -S "/run/user/$uid/bus"
}

as_user() {
    in_capsule setpriv --reuid "$uid" --regid "$uid" --init-groups env HOME=/home/$name USER=$name \
        XDG_RUNTIME_DIR="/run/user/$uid" DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$uid/bus" "$@"
}

# what DONE: the attempts in $output that ended so.
what() { sed -n 's/.*\(unusable": "\|read the file: \)//p' <<<"$output" | tr ';' '\n' | sed -n "s/^ *\(.*\): $1\$/\1/p" | sort; }

# A wall that keeps out what cannot be done anyway would be no finding.
can_be_done_outside() {
    output=$(in_capsule sh -c "script --quiet --return --command 'PAGE=$page $attempts' /dev/null" | tr -d '\r')
    assert_eq "become root
call the bus
list the archive
make a namespace
open a packet socket
open a socket of the network
read a home directory
read a page
read the configuration
read the database
see another process
signal another process
type into the terminal
write a file of the system
write into a sealed page
write into the library
write to the terminal" "$(what "done")" "what root can do"
    in_capsule rm -f "$page/planted" $state/lib/bin/planted /usr/planted /etc/planted /srv/planted /opt/planted /var/planted
}

# on_a_terminal VERB COMMAND…: calls archivist on a terminal, and sets $output to what appears there.
on_a_terminal() {
    local verb=$1
    shift
    output=$("$@" script --quiet --return --command "archivist $verb; read -t 0.2 typed; echo typed=\$typed" /dev/null | tr -d '\r')
    assert_contains "$output" "failed to read the file: list the archive" "the attempts of $verb"
    [[ $output == *typed=* && $output != *typed=?* && $output != *$'\e'* ]] || fail "the reader of $verb reached the terminal: $output"
}

import_on_a_terminal() { on_a_terminal "import --dry-run ${list:-/root/test-list}" "$@"; }

reader_of_root_can_do_nothing() {
    needs can_be_done_outside
    local reader
    import_on_a_terminal in_capsule
    assert_eq "" "$(what "done")" "what the reader could do"
    assert_eq 17 "$(what refused | wc -l)" "attempts that were refused"
    reader=$(in_capsule id -u archivist-import)
    assert_contains "$output" "Uid $reader $reader $reader $reader; Gid $(in_capsule id -g archivist-import) " "its user"
    assert_contains "$output" "CapEff 0000000000000000; NoNewPrivs 1; Seccomp 2; tty 0" "its rights"
    ! in_capsule test -e "$page/planted" || fail "the reader wrote into a sealed page"
    ! in_capsule test -e $state/lib/bin/planted || fail "the reader wrote into the library"
}

# The parsers of verbs that read pages are behind the same wall, and get no file but those of their job.
readers_of_other_verbs_can_do_nothing() {
    needs can_be_done_outside
    local verb
    in_capsule sh -c "for page in $page $other_page; do
            cd \$page && mkdir -p wacz text screenshot && touch wacz/page.wacz text/text.txt screenshot/screenshot.png
        done"
    for verb in "verify /root/test-list" "verify $id" "replay --headless /root/test-list" "replay --headless $id" "export $id --output /root/test.wacz" "export $id --html /root/test-html" "diff $other $id" "diff $other $id --pictures /root/test.png"; do
        on_a_terminal "$verb" in_capsule
        assert_eq "" "$(what "done")" "what the reader of $verb could do"
        assert_eq 18 "$(what refused | wc -l)" "attempts of $verb that were refused"
        assert_contains "$output" "Uid $(in_capsule id -u archivist-import) " "the user of $verb"
    done
    ! in_capsule test -e /root/test.wacz -o -e /root/test-html || fail "there is a file that no reader has written"
    in_capsule sh -c "for page in $page $other_page; do cd \$page && rm -r wacz text screenshot; done"
}

# The program of full text search reads the index, and the texts of pages in the archive.
search_can_only_read() {
    needs can_be_done_outside
    in_capsule sh -c "mkdir -p $search_drop_ins
        printf '[Service]\nEnvironment=SEARCH=1 PAGE=$page\nExecStart=\nExecStart=$attempts\n' >$search_drop_ins/90-test.conf; systemctl daemon-reload"
    on_a_terminal "search words" in_capsule
    in_capsule sh -c "rm -r $search_drop_ins; systemctl daemon-reload"
    assert_eq "list the archive
read a page" "$(what "done")" "what the program could do"
    assert_contains "$output" "Uid $(in_capsule id -u archivist-index) " "its user"
}

# SQLite reads the database of ArchiveBox behind the same wall.
reader_of_a_database_can_do_nothing() {
    needs can_be_done_outside
    in_capsule sh -c 'rm -rf /root/test-box; mkdir -p /root/test-box/archive; echo no database >/root/test-box/index.sqlite3'
    list=/root/test-box
    output=$(in_capsule archivist import --dry-run /root/test-box 2>&1 || true)
    in_capsule rm -r /root/test-box
    assert_contains "$output" "list the archive: refused" "the attempts"
    assert_eq "" "$(what "done")" "what the reader could do"
}

# The group of hooks, which may read all pages, is not that of readers.
its_user_owns_nothing() {
    assert_eq archivist-import "$(in_capsule id -Gn archivist-import)" "its groups"
    assert_nothing "its files" in_capsule find / -ignore_readdir_race -xdev \( -user archivist-import -o -group archivist-import \) -print -quit
    assert_contains "$(in_capsule getent passwd archivist-import)" /nologin "its shell"
}

# The user may read the archive of the machine no more than before, but not write to its own either.
reader_of_a_user_can_do_nothing() {
    needs can_be_done_outside
    local own=/home/$name/.config/systemd/user/archivist-import-.service.d
    as_user sh -c "mkdir -p $own ~/page; printf '[Service]\nEnvironment=PAGE=/home/$name/page\nExecStart=\nExecStart=$attempts\n' >$own/90-test.conf
        echo http://a.test/ >~/list; systemctl --user daemon-reload"
    list=/home/$name/list
    import_on_a_terminal as_user
    assert_eq "" "$(what "done")" "what the reader could do"
    on_a_terminal "verify $list" as_user
    as_user sh -c "rm -r $own; systemctl --user daemon-reload"
    assert_eq "" "$(what "done")" "what the reader could do"
    assert_contains "$output" "NoNewPrivs 1; Seccomp 2; tty 0" "its rights"
    assert_contains "$(as_user archivist import --dry-run /home/$name/list 2>&1 || true)" "1 page" "a list without attempts"
}

cases can_be_done_outside reader_of_root_can_do_nothing readers_of_other_verbs_can_do_nothing search_can_only_read reader_of_a_database_can_do_nothing its_user_owns_nothing \
    reader_of_a_user_can_do_nothing
