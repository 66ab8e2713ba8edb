#!/bin/bash
# Which user may do what with whose pages: root, two members of the group, the services of timers, and a stranger.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

clean() {
    in_capsule sh -c 'for user in member member2 stranger; do userdel $user; done' 2>/dev/null || true
    forget_configuration
}

prepare() {
    plugin testsave <<'SH'
#!/bin/sh
while [ -e /srv/archivist-test/hold ]; do sleep 0.1; done
echo saved >page.txt
SH
    configure </dev/null
    in_capsule sh -c 'useradd --groups archivist member; useradd --groups archivist member2; useradd stranger'
}

# as USER COMMAND…
as() {
    local user=$1
    shift
    in_capsule runuser -u "$user" -- "$@"
}

# call USER [INTERFACE.]METHOD ARGUMENT…: a call of an interface for users, past the command line.
call() {
    local user=$1 interface=Manager method=$2
    shift 2
    [[ $method != *.* ]] || interface=${method%.*} method=${method#*.}
    as "$user" busctl --json=short call org.archivist1 /org/archivist1 org.archivist1."$interface" "$method" "$@"
}

# page USER: archives a page of this user; sets $crawl, $page and $file.
page() {
    crawl=$(as "$1" archivist add --json --plugins testsave "http://$1.test/" | evaluate '.crawl')
    wait_for 60 is_over "$crawl"
    page=$(query '.[0].id' list snapshots "$crawl" --limit 1)
    file=$(query '.[0].directory' list snapshots "$crawl" --limit 1)/testsave/page.txt
}

is_gone() { ! in_capsule test -e "$1"; }

a_member_deletes_what_it_added() {
    page member
    assert_status 1 as member2 archivist delete --yes "$page"
    assert_contains "$output" "$page was added by user member; to delete it, run this as that user or as root" "another member"
    assert_status 0 as member archivist delete --yes "$page"
    wait_for 60 is_gone "$file"
}

pages_of_root_stay() {
    page root
    keep crawl page file
    assert_contains "$(call member Delete asb 1 "$page" false)" "$page was added by user root" "Delete"
    assert_contains "$(call member Delete asb 1 "$crawl" false)" "$crawl was added by user root" "Delete of the crawl"
    assert_status 1 as member archivist pin "$page"
    assert_contains "$output" "to pin it, run this as that user or as root" "pin"
    assert_status 1 as member archivist retry --all "$page"
    assert_contains "$output" "to change its settings or tags, or run all its hooks again" "retry --all"
    assert_status 1 as member archivist retry "$page" --hook testsave
    assert_status 1 as member archivist retry "$crawl" --set TIMEOUT=9
    in_capsule test -e "$file"
}

a_pin_is_removed_by_its_owner_or_root() {
    needs pages_of_root_stay
    archivist pin "$page"
    assert_status 1 as member archivist unpin "$page"
    assert_contains "$output" "$page was pinned by user root; to unpin it, run this as that user or as root" "unpin"
    local roots=$page
    page member
    as member archivist pin "$page"
    assert_status 1 as member2 archivist unpin "$page"
    as member archivist unpin "$page"
    archivist pin "$page"
    assert_status 1 as member archivist unpin "$page"
    assert_status 1 as member archivist delete --yes "$page"
    assert_contains "$output" "$page is pinned" "a page of its own that root pinned"
    archivist unpin "$page" "$roots"
}

# Nothing that was saved is lost by it, and a retry queues the pages again.
members_stop_and_retry_crawls_of_root() {
    needs pages_of_root_stay
    assert_status 0 as member archivist update "$crawl"
    in_capsule touch $signs/hold
    local running
    running=$(archivist add --json --plugins testsave http://running.test/ | evaluate '.crawl')
    wait_for 30 has_unit "archivist-hook-testsave-s*.service"
    assert_status 0 as member archivist pause "$running"
    assert_status 0 as member archivist resume "$running"
    assert_status 0 as member archivist cancel "$running"
    wait_for 60 is_over "$running"
    in_capsule rm $signs/hold
    assert_status 0 as member archivist retry "$running"
    wait_for 60 is_over "$running"
    assert_eq sealed "$(crawl_status "$running")" "the crawl after the retry"
}

the_machine_is_for_root() {
    local method
    for method in Reload Search.Rebuild Store.Test Retention.Confirm; do
        # busctl prints no text of the error.
        assert_status 1 call member $method
        assert_contains "$output" "Access denied" "$method by a member"
        assert_status 1 call archivist-timer $method
        assert_status 1 call stranger $method
    done
    assert_status 0 call root Reload
}

timers_and_strangers_change_nothing() {
    needs pages_of_root_stay
    local user
    for user in archivist-timer stranger; do
        assert_status 1 call $user Delete asb 1 "$page" false
        assert_status 1 call $user Unpin sb "$page" false
        assert_status 1 call $user RetryAll s "$page"
        assert_status 1 call $user Amend ss "$crawl" '{}'
    done
    # The policy of the bus admits the services of timers to Retry, for all that failed.
    assert_status 1 call archivist-timer Retry ss "$page" testsave
    assert_status 0 call archivist-timer Retry ss "" ""
    in_capsule test -e "$file"
}

root_can_let_members_delete() {
    needs pages_of_root_stay
    configure <<<"[Orchestrator]
MembersDelete=yes"
    archivist pin "$page"
    assert_status 1 as member archivist unpin "$page"
    archivist unpin "$page"
    assert_status 0 as member archivist delete --yes "$page"
    wait_for 60 is_gone "$file"
}

cases a_member_deletes_what_it_added pages_of_root_stay a_pin_is_removed_by_its_owner_or_root members_stop_and_retry_crawls_of_root the_machine_is_for_root timers_and_strangers_change_nothing root_can_let_members_delete
