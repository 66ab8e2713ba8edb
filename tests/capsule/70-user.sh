#!/bin/bash
# `archivist --user`: archiving without root, under the service manager of a user with lingering enabled.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

name=testuser

clean() {
    in_capsule loginctl terminate-user $name 2>/dev/null || true
    in_capsule loginctl disable-linger $name 2>/dev/null || true
    in_capsule systemctl stop "user@$uid.service" 2>/dev/null || true
    in_capsule userdel --remove $name 2>/dev/null || true
    purge_pools
}

prepare() {
    install_pools
    in_capsule useradd --create-home --shell /bin/bash $name
    uid=$(in_capsule id -u $name)
    in_capsule loginctl enable-linger $name
    wait_for 20 has_unit "user@$uid.service"
    wait_for 20 in_capsule test -S "/run/user/$uid/bus"
    as_user sh -c 'mkdir -p ~/.local/share/archivist/plugins/testhold ~/.local/share/archivist/plugins/testquick \
            ~/.local/share/archivist/plugins/testcookies ~/.local/share/archivist/plugins/testfails
        cd ~/.local/share/archivist/plugins
        printf "#!/bin/sh\necho kept >kept.txt\necho from-a-hook >&2\nsleep 1\n" >testquick/on_Snapshot__20_testquick.sh
        printf "#!/bin/sh\nexit 1\n" >testfails/on_Snapshot__20_testfails.sh
        printf "#!/bin/sh\nexec sleep 60\n" >testhold/on_Snapshot__20_testhold.sh
        printf "#!/bin/sh\ncut -sf 7 \"\$COOKIES_FILE\" >cookies.txt\n" >testcookies/on_Snapshot__20_testcookies.sh
        chmod 755 */*.sh
        for plugin in *; do echo "{\"type\": \"object\", \"properties\": {}}" >$plugin/config.json; done'
}

as_user() {
    in_capsule setpriv --reuid "$uid" --regid "$uid" --init-groups env HOME=/home/$name USER=$name \
        XDG_RUNTIME_DIR="/run/user/$uid" DBUS_SESSION_BUS_ADDRESS="unix:path=/run/user/$uid/bus" "$@"
}

ask() { # FILTER VERB…
    local expression=$1
    shift
    as_user archivist --user "$@" --json | evaluate "$expression"
}

units_of_user() { as_user systemctl --user list-units --all --plain --no-legend "$@"; }

is_over_for_user() { [[ $(ask '.crawl.crawl | field("ended_at") != null' show "$1") == true ]]; }

no_work_is_left() { [[ -z $(units_of_user 'archivist-crawl-*' 'archivist-snapshot-*' 'archivist-hook-*') ]]; }

# journald determines the unit of a line shortly after it was written, while the process exists.
has_line() {
    [[ $(in_capsule journalctl --quiet --no-pager --output=cat --lines=1 _UID="$uid" \
        _SYSTEMD_USER_UNIT=archivist-hook-testquick-s1.service) == "$1" ]]
}

archives_as_a_user() {
    local directory
    assert_status 0 as_user archivist --user add --wait --plugins testquick http://user.test/
    assert_contains "$output" "c1 sealed" "add --wait"
    assert_contains "$output" "see: archivist --user show c1" "the command that add --wait names"
    assert_eq sealed "$(ask '.[0].status' list crawls)" "list"
    directory=$(ask '.snapshot.snapshot.directory' show s1)
    assert_contains "$directory" "/home/$name/.local/share/archivist/archive/" "directory of the snapshot"
    assert_eq kept "$(in_capsule cat "$directory/testquick/kept.txt")" "what the hook kept"
    assert_eq $name "$(in_capsule stat -c %U "$directory/testquick/kept.txt")" "its owner"
    # A user's manager has no LogExtraFields=: its lines are found by unit.
    wait_for 10 has_line from-a-hook
    assert_contains "$(as_user archivist --user logs s1)" from-a-hook "logs of the page"
    assert_contains "$(as_user archivist --user logs --hook testquick c1)" from-a-hook "logs of the hook"
    wait_for 20 no_work_is_left
}

# A unit with the name of a transfer has its sandbox.
transfers_write_their_own_directories() {
    as_user sh -c 'mkdir ~/store ~/page'
    as_user systemd-run --user --quiet --wait --pipe --collect --unit=archivist-store-s77 --property="BindPaths=/home/$name/store" \
        --property="BindReadOnlyPaths=/home/$name/page" touch "/home/$name/store/wrote" "/home/$name/page/wrote" "/home/$name/wrote" || true
    assert_eq "/home/$name/store/wrote" "$(in_capsule find "/home/$name" -name wrote)" "files that a transfer wrote"
}

# Lines of hooks that start after the command.
follows_hooks_of_a_user() {
    local crawl
    assert_status 0 as_user archivist --user run --debug --plugins testquick http://user.test/debug
    [[ $output == *"testquick.sh (s"*"): from-a-hook"* ]] || fail "run --debug: $output"
    crawl=$(ask '.crawl' add --plugins testquick http://user.test/follow)
    assert_status 0 as_user timeout 20 sh -c "archivist --user logs --follow --lines 100 $crawl | grep --max-count=1 from-a-hook"
    wait_for 20 no_work_is_left
}

told() { as_user sh -c 'sort ~/told 2>/dev/null || true' | paste -sd " "; }

has_told() { [[ $(told) == "$1" ]]; }

# Units of the user start when a crawl ends, as those of the machine do.
units_of_a_user_start_at_the_end_of_crawls() {
    local crawl
    as_user sh -c 'mkdir -p ~/.config/systemd/user ~/.config/archivist
        printf "[Service]\nType=oneshot\nExecStart=/bin/sh -c \"echo %%p %%i >>%%h/told\"\n" |
            tee ~/.config/systemd/user/sealed@.service >~/.config/systemd/user/failed@.service
        printf "[Orchestrator]\nOnSealed=sealed@.service\nOnFailed=failed@.service\n" >~/.config/archivist/archivist.conf
        systemctl --user daemon-reload; systemctl --user restart archivist-orchestrator.service'
    crawl=$(ask '.crawl' add --plugins testquick http://user.test/sealed)
    wait_for 30 has_told "sealed $crawl"
    as_user rm "/home/$name/told"
    crawl=$(ask '.crawl' add --plugins testfails http://user.test/failed)
    wait_for 30 has_told "failed $crawl"
    as_user sh -c 'rm ~/.config/archivist/archivist.conf; systemctl --user restart archivist-orchestrator.service'
    wait_for 20 no_work_is_left
}

# A persona of the user, which no other user can read.
takes_up_a_persona() {
    local directory
    as_user sh -c 'printf "user.test\tFALSE\t/\tFALSE\t0\tname\tnetscape\n" >~/cookies && archivist --user persona import mine --cookies ~/cookies'
    assert_eq 700 "$(in_capsule stat -c %a /home/$name/.local/share/archivist/personas)" "mode of the personas"
    assert_status 0 as_user archivist --user add --wait --persona mine --plugins testcookies http://user.test/persona
    directory=$(ask '.[0].directory' list snapshots --limit 1)
    assert_eq netscape "$(in_capsule cat "$directory/testcookies/cookies.txt")" "the cookies that a hook has"
    wait_for 20 no_work_is_left
}

# No command is run after the start of the service manager, as at boot.
continues_when_the_manager_starts() {
    local crawl
    crawl=$(ask '.crawl' add --plugins testquick http://user.test/boot)
    in_capsule systemctl stop "user@$uid.service"
    in_capsule systemctl start "user@$uid.service"
    wait_for 20 as_user systemctl --user --quiet is-active archivist-orchestrator.service
    wait_for 30 is_over_for_user "$crawl"
    wait_for 20 no_work_is_left
}

cancels_as_a_user() {
    local crawl
    crawl=$(ask '.crawl' add --plugins testhold http://user.test/hold)
    wait_for 20 as_user systemctl --user --quiet is-active 'archivist-hook-testhold-s*.service'
    assert_contains "$(as_user systemctl --user --no-pager status 'archivist-*')" archivist-hook-testhold "systemctl --user status"
    as_user archivist --user cancel "$crawl"
    wait_for 20 is_over_for_user "$crawl"
    assert_eq cancelled "$(ask '.crawl.crawl.status' show "$crawl")" "the cancelled crawl"
    wait_for 20 no_work_is_left
    assert_nothing "failed units of the user" units_of_user --failed
}

# The index of a user's archive has one server for all crawls, here the stand-in of 38-contract.sh.
has_a_search_index() {
    local index=/home/$name/.local/share/archivist/index/search_backend_sonic word
    in_capsule rm -rf /opt/test-sonic
    capsule cp "$ROOT/tests/capsule/sonic" "$CAPSULE:/opt/test-sonic"
    in_capsule sh -c "chmod -R a+rX /opt/test-sonic; install -m 755 /opt/test-sonic/server.py /usr/local/bin/sonic"
    as_user sh -c "mkdir ~/.local/share/archivist/plugins/search_backend_sonic && cd ~/.local/share/archivist/plugins/search_backend_sonic &&
        install -m 755 /opt/test-sonic/on_Snapshot__91_index_sonic.py . && sed 's/1491/$((14920 + release_number))/' /opt/test-sonic/config.json >config.json"
    for word in tulip rose; do
        assert_status 0 as_user archivist --user add --wait --plugins search_backend_sonic http://user.test/$word
    done
    assert_eq active "$(as_user systemctl --user is-active archivist-sonic.service)" "the server after the crawls"
    assert_eq "$(ask 'map(select(.url | endswith("tulip")).id)' list snapshots)" \
        "$(as_user python3 /opt/test-sonic/query.py "$index/server.socket" secret tulip)" "pages with the word"
    assert_eq 1 "$(in_capsule sh -c "wc -l <$index/sonic/starts")" "starts of the server"
    as_user systemctl --user stop archivist-sonic.service
    in_capsule rm -r /opt/test-sonic /usr/local/bin/sonic
    wait_for 20 no_work_is_left
}

pool_pid() { ask ".workers[$1].pid" pool status testmine; }

pool_pid_is_gone() { [[ $(pool_pid "$1") != "$2" ]]; }

pool_pid_is_new() { [[ $(pool_pid "$1") != @("$2"|null) ]]; }

# The generator also runs in the service manager of the user, so a pool does not require root.
keeps_workers_of_a_user() {
    local pid other
    # shellcheck disable=SC2016 # %t is systemd's
    assert_status 0 as_user archivist --user pool add testmine -n 2 --set HealthIntervalSec=1s \
        --set 'HealthCheck=/bin/sh -c "test ! -e %t/sick%i"' --now -- sleep 1000
    assert_eq 2 "$(ask '.running' pool status testmine)" "workers of the user"
    in_capsule test -e /home/$name/.config/archivist/testmine.pool
    pid=$(pool_pid 0) other=$(pool_pid 1)
    in_capsule touch "/run/user/$uid/sick0"
    wait_for 30 pool_pid_is_gone 0 "$pid"
    in_capsule rm "/run/user/$uid/sick0"
    wait_for 30 pool_pid_is_new 0 "$pid"
    assert_eq "$other" "$(pool_pid 1)" "the worker that is well"
    as_user archivist --user pool remove testmine
    assert_nothing "what is left of the user's pool" units_of_user 'archivist-pool-testmine*.service'
    assert_status 1 as_user archivist pool add testtheirs -- sleep 1
    assert_contains "$output" "sudo" "a pool of the machine, by a user"
}

# The archives of the machine and of a user are separate: a user in no group cannot access that of the machine.
leaves_the_system_alone() {
    assert_status 1 as_user archivist list crawls
    assert_contains "$output" "denied" "the system's orchestrator, asked by a stranger"
    assert_contains "$output" "archivist --user" "the way out"
    [[ -z $(in_capsule systemctl list-units --all --plain --no-legend 'archivist-hook-*') ]] || fail "a user's hook runs in the system's manager"
}

uid=
cases archives_as_a_user follows_hooks_of_a_user transfers_write_their_own_directories units_of_a_user_start_at_the_end_of_crawls takes_up_a_persona has_a_search_index continues_when_the_manager_starts cancels_as_a_user keeps_workers_of_a_user leaves_the_system_alone
