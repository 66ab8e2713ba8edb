#!/bin/bash
# Versions of a page that were not saved: the server is down, refuses, or answers with an error or nothing. No verb takes one for the page,
# and none replaces a version that was saved.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

retention=${drop_in%/*}/retention.conf
held=archivist-retention-held.service
live=http://127.0.0.1:18052/live
KINDS='down 404 500 403 204'

clean() {
    answer down
    in_capsule rm -f "$retention"
    forget_configuration
}

prepare() {
    forget_pages
    in_capsule mkdir -p $signs
    capsule cp "$(dirname "$0")/versions/server.py" "$CAPSULE:/opt/versions-server.py"
    printf '[Orchestrator]\nHostDelaySec=0\nHttpAttempts=1\n' | configure
    answer ok
}

# answer KIND: what the server does from now on.
answer() {
    in_capsule systemctl stop test-versions.service 2>/dev/null || true
    [[ $1 != down ]] || return 0
    in_capsule sh -c "echo $1 >$signs/answer"
    in_capsule systemd-run --quiet --collect --unit=test-versions --property=Type=exec python3 /opt/versions-server.py $signs/answer
    wait_for 20 listens
}

listens() { in_capsule bash -c 'exec 3<>/dev/tcp/127.0.0.1/18052' 2>/dev/null; }

# version URL OPTION…: archives a page and prints the id of the snapshot.
version() {
    local url=$1 crawl
    shift
    crawl=$(archivist add --json --wait --plugins wget,headers,text,hashes "$@" "$url" | gojq --raw-output --slurp '.[0].crawl') || true
    query 'map(.id) | only' list snapshots "$crawl"
}

unsaved() { query 'map(.unsaved // "saved") | only' list snapshots "$1"; }

good_versions_are_saved() {
    local id
    for _ in 1 2 3; do
        id=$(version $live --tag live)
        assert_eq saved "$(unsaved "$id")" "version $id"
    done
    good=$id
    keep good
}

bad_versions_are_named() {
    local kind id url
    needs good_versions_are_saved
    for kind in $KINDS; do
        answer "$kind"
        id=$(version $live --tag live)
        [[ $(unsaved "$id") != saved ]] || fail "$kind: $id counts as saved"
        assert_contains " $(query 'map(.id)' list snapshots --status unsaved) " " $id " "$kind: list --status unsaved"
        assert_contains "$(archivist open --print $live 2>/dev/null)" "/$good/index.html" "$kind: what open opens"
        assert_contains "$(archivist open --print $live 2>&1 >/dev/null)" "$id, which is newer, was not saved" "$kind: what open says"
        assert_status 0 archivist delete --dry-run --keep-newest 1 --url $live
        [[ $output != *"$good "* ]] || fail "$kind: --keep-newest would delete $good: $output"
        # A page of which there is no other version is archived again.
        url=${live%live}$kind
        version "$url" >/dev/null
        archivist add --only-new --plugins wget "$url" | grep -q queued || fail "$kind: --only-new takes the page as archived"
    done
    answer ok
    assert_status 0 archivist add --only-new --plugins wget $live
    assert_contains "$output" "nothing new" "a page that was saved"
}

search_leaves_them_out() {
    needs bad_versions_are_named
    wait_for 30 finds_harvest
    assert_status 0 archivist search dreadful
    assert_contains "$output$(archivist search dreadful 2>&1)" "nothing found" "pages of errors"
    assert_status 0 archivist search --status unsaved dreadful
    assert_contains "$output" "dreadful failure" "errors, if they are asked for"
}
finds_harvest() { archivist search --json harvest | gojq -e '.total > 0' >/dev/null; }

# The rule would delete most versions, so it waits for an administrator, and then keeps the newest version that was saved.
retention_waits_and_keeps_the_saved_version() {
    needs bad_versions_are_named
    printf '[Archive]\nRetention=tag:live versions=1\n' | in_capsule sh -c "cat >$retention"
    in_capsule systemctl reload $service
    wait_for 20 is_held
    assert_contains "$(archivist status)" "would delete" "what status says"
    assert_eq failed "$(in_capsule systemctl is-failed $held)" "the unit that fails"
    assert_contains "$(archivist doctor 2>&1 || true)" "by-retention" "what doctor advises"
    assert_eq 8 "$(query length list snapshots --url $live)" "versions while the rule waits"
    assert_status 0 archivist delete --by-retention --yes
    assert_eq saved "$(unsaved "$good")" "the newest version that was saved"
    [[ $(in_capsule systemctl is-failed $held) != failed ]] || fail "$held is still failed"
    answer down
    version $live --tag live >/dev/null
    assert_eq saved "$(unsaved "$good")" "after another failure"
}
is_held() { archivist status --json | gojq -e .retention_held >/dev/null; }

cases good_versions_are_saved bad_versions_are_named search_leaves_them_out retention_waits_and_keeps_the_saved_version
