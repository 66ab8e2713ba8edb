#!/bin/bash
# F31: the power of a machine is cut at random times while lists are imported, pages deleted, and the index of full text search
# changed. After each boot all pages whose import was reported are there once, those whose deletion was reported are gone with their
# files, and the index has what the rows have: as it is, or because it builds itself again.
# In a full run alone: it requires a virtual machine.
source "$(dirname "$0")/machine.sh"

CUTS=$(times 2 20) COUNT=20
archive=/var/lib/archivist/archive
said=$work/said

clean() {
    [[ -z ${talk-} ]] || kill "$talk" 2>/dev/null || true
    forget_configuration
}

prepare() {
    need_machine
    : >"$said"
    printf '[Orchestrator]\nRetrySec=1s\nRetryMaxSec=2s\nAttemptsMax=1000\n' | configure
}

# The machine imports and deletes lists, and prints what the commands reported, until its power is cut.
talk() {
    local next
    next=$(($(count begins) + 1))
    in_capsule sh -s $COUNT $next >>"$said" 2>/dev/null <<'SH' &
n=$2
while :; do
    echo "begins $n"
    { echo url,title,tags; seq $1 | sed "s|.*|http://list$n.test/&,list$n &,list$n|"; } >/root/list.csv
    archivist import --keep-only --wait /root/list.csv >/dev/null && echo "imported $n"
    if [ $n -gt 2 ]; then
        echo "deletes $((n - 2))"
        archivist delete --yes --tag list$((n - 2)) >/dev/null && echo "deleted $((n - 2))"
    fi
    n=$((n + 1))
done
SH
    talk=$!
}

count() { grep -c "^$1 " "$said" || true; }
has_more() { (($(count "$1") > $2)); }
index_is_idle() { ! has_unit archivist-index-pages.service && [[ $(query .search.queued status) == 0 ]]; }
found() { archivist search --json -n 0 --all "$1" 2>/dev/null | gojq .total; }

# Compares rows, files and index with what was reported.
assert_kept() {
    local rows n kept=0 gone=0
    rows=$(query 'map(.url | capture("//list(?<n>[0-9]+)[.]").n) | group_by(.) | map("\(.[0]) \(length)") | .[]' list snapshots --limit 0)
    while read -r n; do
        if grep -q "^deletes $n\$" "$said"; then continue; fi
        grep -q "^$n $COUNT\$" <<<"$rows" || fail "the import of list $n was reported; rows: $(grep "^$n " <<<"$rows")"
        kept=$((kept + 1))
    done < <(sed -n 's/^imported //p' "$said")
    wait_for 300 files_are_removed
    while read -r n; do
        ! grep -q "^$n " <<<"$rows" || fail "the deletion of list $n was reported, and it is there"
        gone=$((gone + 1))
    done < <(sed -n 's/^deleted //p' "$said")
    assert_nothing "what removals left" in_capsule find $archive -mindepth 3 -maxdepth 3 -name '.deleted-*'
    wait_for 600 is_everything_sealed
    assert_eq "$(query 'map(select(.directory)) | length' list snapshots --limit 0)" \
        "$(in_capsule find $archive -mindepth 3 -maxdepth 3 -name 's*' -printf . | wc -c)" "rows, and directories of pages"
    wait_for 300 index_is_idle
    assert_eq "$(query length list snapshots --limit 0)" "$(found 'list*')" "rows, and pages that search finds"
    assert_status 0 archivist fsck
    summary="kept=$kept gone=$gone"
}
is_everything_sealed() { [[ $(query .snapshots.queued status) == null ]]; }

the_power_is_cut() {
    local cut word reported pieces=0 summary
    for ((cut = 1; cut <= CUTS; cut++)); do
        talk
        # By turns soon after an import, while a deletion begins or files are removed, and soon after a deletion, during an import.
        reported=imported
        ((cut % 2)) || reported=deleted
        wait_for 600 has_more $reported "$(count $reported)"
        sleep "$((RANDOM % 20)).$((RANDOM % 10))"
        word=$(capsule power-cut "$CAPSULE" "$RANDOM")
        wait "$talk" || true
        talk=''
        word=${word#*lost=}
        pieces=$((pieces + ${word%% *}))
        capsule boot "$CAPSULE" "${RELEASE-trixie}" --keep
        assert_kept
    done
    figure "F31 power cuts=$CUTS, pieces of 4 KiB lost=$pieces, lists $summary"
}

cases the_power_is_cut
