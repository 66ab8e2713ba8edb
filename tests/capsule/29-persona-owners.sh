#!/bin/bash
# Only root and the users on its list may use a persona. Importing follows no link of other users. The bus does not start a
# service that root disabled.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

personas=/var/lib/archivist/personas

clean() {
    in_capsule sh -c "rm -rf /srv/test-cookies $personas/bank $personas/Default $personas/.bank.* $personas/.Default.*
        systemctl enable --quiet $service
        for user in member colleague stranger; do userdel -r \$user; done; groupdel finance; systemd-tmpfiles --create archivist.conf" 2>/dev/null || true
    forget_configuration
}

prepare() {
    plugin testowner <<'SH2'
#!/bin/sh
cut -sf 7 "$COOKIES_FILE" >cookies.txt
while [ -e /srv/archivist-test/hold ]; do sleep 0.1; done
# This hook fails, so that its result can be retried.
{ cat /var/lib/archivist/personas/*/cookies.txt; ls /var/lib/archivist/personas; } >original.txt 2>/dev/null
exit 1
SH2
    in_capsule sh -c 'cat >$0/testowner/config.json' $plugins <<<'{"type": "object", "properties": {"CHROME_ISOLATION": {"type": "string"}}}'
    configure </dev/null
    in_capsule sh -c 'groupadd finance; useradd -m -G archivist member; useradd -m -G archivist,finance colleague; useradd -m stranger
        umask 077; printf "owner.test\tFALSE\t/\tFALSE\t0\tname\tsession=root\n" >/srv/test-cookies'
}

# as USER COMMAND…
as() {
    local user=$1
    shift
    in_capsule runuser -u "$user" -- "$@"
}

# cookies USER OPTION…: runs a crawl of USER; sets $found to the cookies that its hook found, and $crawl.
cookies() {
    local user=$1
    shift
    crawl=$(as "$user" archivist add --json --plugins testowner "$@" http://owner.test/ | evaluate '.crawl')
    wait_for 60 is_over "$crawl"
    found=$(in_capsule cat "$(query '.[0].directory' list snapshots "$crawl" --limit 1)/testowner/cookies.txt")
}

only_root_gets_into_the_directory() {
    archivist persona import bank --cookies /srv/test-cookies
    assert_eq "root 2700" "$(in_capsule stat -c '%U %a' $personas)" "the directory"
    local user
    for user in archivist archivist-hook archivist-hook-1 member; do
        assert_status 1 as "$user" cat $personas/bank/cookies.txt
    done
    cookies root --persona bank
    assert_eq "session=root" "$found" "a crawl of root"
    in_capsule chmod 2750 $personas
    assert_contains "$(archivist doctor || true)" "systemd-tmpfiles --create" "doctor on a wider mode"
    in_capsule systemd-tmpfiles --create archivist.conf
    assert_eq "root 2700" "$(in_capsule stat -c '%U %a' $personas)" "the directory after tmpfiles"
}

others_are_refused() {
    needs only_root_gets_into_the_directory
    assert_eq "root" "$(query '.[0].users' persona list)" "users"
    assert_status 2 as member archivist add --persona bank http://owner.test/
    assert_contains "$output" "user member may not use persona 'bank'; to allow it as root: archivist persona allow bank member" "the refusal"
    # The attack: members choose the arguments of hooks.
    assert_status 2 as member archivist add --persona bank --plugins wget --set 'WGET_ARGS_EXTRA=["--post-file=/tmp/personas/bank/cookies.txt"]' http://owner.test/
    assert_status 2 as member archivist run --dry-run --persona bank http://owner.test/
    assert_status 1 as member archivist persona allow bank member
    assert_status 1 as member archivist persona set bank USER_AGENT=mine
    assert_contains "$output" "only root can change the machine's personas" "settings by a member"
}

users_and_groups_are_allowed() {
    needs only_root_gets_into_the_directory
    archivist persona allow bank member
    cookies member --persona bank
    assert_eq "session=root" "$found" "a crawl of a user on the list"
    members=$crawl
    keep members
    assert_status 2 as colleague archivist add --persona bank http://owner.test/
    archivist persona allow bank @finance
    assert_eq "root member @finance" "$(query '.[0].users' persona list)" "users"
    cookies colleague --persona bank
    assert_eq "session=root" "$found" "a crawl of a member of the group"
    archivist persona deny bank @finance
}

settings_of_others_stay_out() {
    needs users_and_groups_are_allowed
    assert_status 1 as colleague archivist retry "$members" --set TIMEOUT=31
    assert_contains "$output" "was added by user member; to change its settings" "the refusal"
    local own
    own=$(as colleague archivist add --json --plugins testowner http://owner.test/ | evaluate '.crawl')
    wait_for 60 is_over "$own"
    assert_status 1 as member archivist retry "$own" --set ACTIVE_PERSONA=bank
    assert_status 2 as colleague archivist retry "$own" --set ACTIVE_PERSONA=bank
    assert_contains "$output" "user colleague may not use persona 'bank'" "the refusal of the persona"
    assert_status 0 as member archivist retry "$members" --set TIMEOUT=31
    wait_for 60 is_over "$members"
}

# A running crawl keeps its copy of the persona, also after a restart of the orchestrator; a retry is refused.
what_is_taken_away_is_gone_for_old_crawls() {
    needs settings_of_others_stay_out
    in_capsule touch $signs/hold
    as member archivist retry "$members" >/dev/null
    wait_for 30 has_unit "archivist-hook-testowner-s*.service"
    archivist persona deny bank member
    restart
    in_capsule rm $signs/hold
    wait_for 60 is_over "$members"
    assert_eq "1 page is incomplete; 1 result failed" "$(query '.[0].reason' list crawls "$members")" "a running crawl"
    as member archivist retry "$members" >/dev/null
    wait_for 60 is_over "$members"
    assert_contains "$(query '.[0].reason' list crawls "$members")" "user member may not use persona 'bank'" "the reason"
}

the_usual_one_is_in_crawls_of_its_users() {
    SUDO_UID=$(in_capsule id -u colleague)
    in_capsule env SUDO_UID="$SUDO_UID" archivist persona import Default --cookies /srv/test-cookies
    assert_eq "root colleague" "$(query 'map(select(.name == "Default")) | only.users' persona list)" "who called sudo"
    cookies colleague
    assert_eq "session=root" "$found" "a crawl of a user on its list"
    cookies member
    assert_eq "" "$found" "a crawl of another one"
    archivist persona allow Default '*'
    cookies member
    assert_eq "session=root" "$found" "a crawl of everyone"
    archivist persona remove Default
    assert_eq "" "$(in_capsule sh -c "ls -d $personas/.Default*" 2>/dev/null)" "its list"
}

root_follows_no_link() {
    as member sh -c 'cd /home/member; ln -s /etc/shadow cookies.txt; mkdir profile real; ln -s /root profile/Default; ln -s /etc real/etc; ln -s real link'
    assert_status 1 archivist persona import test --cookies /home/member/cookies.txt
    assert_contains "$output" "symbolic link, which is not followed" "cookies that are a link"
    assert_status 1 archivist persona import test --cookies /home/member/real/etc/shadow
    assert_status 1 archivist persona import test --profile /home/member/link
    assert_status 0 archivist persona import test --profile /home/member/profile
    assert_nothing "what a link in a profile brought" in_capsule find $personas/test/chrome_profile -mindepth 1
    archivist persona remove test
}

# start_service: as a user in no group, with the call that no policy of ours covers.
start_service() {
    as stranger busctl --quiet call org.freedesktop.DBus /org/freedesktop/DBus org.freedesktop.DBus StartServiceByName su org.archivist1 0
}

what_is_disabled_stays_stopped() {
    in_capsule systemctl disable --quiet --now $service
    assert_status 1 start_service
    assert_status 4 archivist status
    assert_eq inactive "$(in_capsule systemctl is-active $service || true)" "the orchestrator"
    in_capsule systemctl enable --quiet $service
    assert_status 0 archivist status
    in_capsule systemctl stop $service
    assert_status 0 archivist status
}

cases only_root_gets_into_the_directory others_are_refused users_and_groups_are_allowed settings_of_others_stay_out \
    what_is_taken_away_is_gone_for_old_crawls the_usual_one_is_in_crawls_of_its_users root_follows_no_link \
    what_is_disabled_stays_stopped
