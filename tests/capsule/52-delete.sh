#!/bin/bash
# archivist delete: pages and crawls with their files, their entries in lists and their copies in the store; what it refuses;
# removals that are killed; and the lists of URLs, before and after deletions.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

archive=/var/lib/archivist/archive
store=/srv/delete-store
retention=${drop_in%/*}/retention.conf
unit='archivist-delete-*.service'
PAGES=40

clean() {
    in_capsule rm -rf $store "$retention"
    forget_configuration
}

prepare() {
    plugin testfiles <<'SH'
#!/bin/sh
seq 200 | xargs touch
SH
    forget_pages
    in_capsule install -d -o archivist -g archivist $store
    printf '[Orchestrator]\nRetrySec=1s\nHostDelaySec=0\n[Fleet]\nStore=%s\n' $store | configure
}

# archived URL…: prints the id of a crawl of these pages.
archived() { printf '%s\n' "$@" | in_capsule archivist add --json --plugins testfiles --wait - | gojq --raw-output --slurp '.[0].crawl'; }

# Directories of pages on the disk, and rows of pages.
directories() { in_capsule find $archive -mindepth 3 -maxdepth 3 -name 's*' -printf . | wc -c; }
rows() { query 'map(select(.directory)) | length' list snapshots --limit 0; }

archives() {
    local crawl
    crawl=$(archived https://old.test/{1..3} https://kept.test/)
    first=$(query 'map(.id) | sort_by(number) | .[0]' list snapshots "$crawl")
    archived https://old.test/{1..3} >/dev/null
    assert_eq 7 "$(directories)" "directories of pages"
    keep first
}

asks_before_it_deletes() {
    needs archives
    assert_status 2 archivist delete "$first"
    assert_contains "$output" "--yes" "what it says without a terminal"
    assert_status 2 archivist delete
    assert_status 0 archivist delete --dry-run --keep-newest 1
    assert_contains "$output" "would delete 3 pages" "older pages of the same URLs"
    assert_eq "3 3" "$(query '"\(.pages) \(.selected | map(select(.url)) | length)"' delete --dry-run --keep-newest 1)" "the same for programs"
    assert_status 0 archivist delete --dry-run --url 'https://kept.test/*' --tag none
    assert_contains "$output" "nothing to delete" "no page has the tag"
    assert_status 1 archivist delete --yes s99999
    assert_contains "$output" "no snapshot s99999" "an unknown page"
    assert_eq 7 "$(rows)" "rows"
}

deletes_with_files_and_lists() {
    local directory
    needs archives
    directory=$(query '.[0].directory' list snapshots "$first")
    in_capsule test -d "$directory"
    assert_status 0 archivist delete --yes --keep-newest 1
    assert_contains "$output" "deleted 3 pages" "what it says"
    wait_for 20 files_are_removed
    in_capsule test ! -e "$directory" || fail "'$directory' is still there"
    assert_eq "4 4" "$(directories) $(rows)" "directories and rows"
    assert_eq "old.test/1 1" "$(in_capsule grep -o 'old.test/1<' $archive/index.html | sort | uniq -c | awk '{ sub("<", "", $2); print $2, $1 }')" \
        "the page in the list of the archive"
    assert_eq 1 "$(in_capsule grep -o 'old.test/1<' $archive/sites/old.test/index.html | wc -l)" "the page in the list of its site"
    assert_status 1 archivist show "$first"
    assert_status 0 archivist fsck
}

copies_go_too() {
    local page before
    needs archives
    page=$(query 'map(select(.url == "https://kept.test/")) | only | .id' list snapshots --limit 0)
    wait_for 20 is_copied "$page"
    before=$(in_capsule find $store -name '*.tar' -printf . | wc -c)
    assert_status 0 archivist delete --yes "$page"
    wait_for 20 files_are_removed
    wait_for 20 copies_are $((before - 1))
    assert_status 0 archivist fsck
}
is_copied() { in_capsule sh -c "find $store -name '$1-*.tar' | grep -q ."; }
copies_are() { [[ $(in_capsule find $store -name '*.tar' -printf . | wc -c) == "$1" ]]; }

refuses_what_is_not_over() {
    local crawl
    needs archives
    plugin testwaits <<<'exec sleep 60'
    crawl=$(add --plugins testwaits https://waits.test/)
    wait_for 20 has_unit "archivist-hook-testwaits-*"
    assert_status 1 archivist delete --yes "$crawl"
    assert_contains "$output" "archivist cancel $crawl" "how to end it"
    archivist cancel --wait "$crawl" >/dev/null
    assert_status 0 archivist delete --yes "$crawl"
    assert_eq 0 "$(query 'map(select(.url == "https://waits.test/")) | length' list crawls --limit 0)" "the cancelled crawl"
}

pinned_pages_stay() {
    local crawl page
    needs archives
    crawl=$(archived https://pinned.test/{1..2})
    page=$(query 'map(.id) | sort_by(number) | .[0]' list snapshots "$crawl")
    assert_status 0 archivist pin "$page"
    assert_eq "$page pinned" "$output" "what it says"
    assert_status 1 archivist delete --yes "$page"
    assert_contains "$output" "archivist unpin $page" "what to do first"
    assert_status 1 archivist delete --yes "$crawl"
    assert_contains "$output" "its page $page is pinned" "why the crawl stays"
    assert_status 0 archivist delete --yes --url 'https://pinned.test/*'
    assert_contains "$output" "1 pinned page is kept" "pinned pages that fit"
    assert_contains "$output" "deleted 1 page " "the other page"
    assert_eq "$page" "$(query 'map(select(.pinned) | .id) | only' list snapshots "$crawl")" "what is left"
    assert_status 0 archivist unpin "$page"
    assert_status 0 archivist delete --yes "$crawl"
    wait_for 20 files_are_removed
}

# Older versions go by a rule, when it is configured and when a newer one is sealed.
retention_deletes_older_versions() {
    local rule='tag:aging versions=1' pinned
    needs archives
    archive_aging
    pinned=$(query 'map(.id) | only' list snapshots --url https://aging.test/)
    archive_aging
    archive_aging
    assert_status 0 archivist pin "$pinned"
    assert_status 0 archivist delete --dry-run "--by-retention=$rule"
    assert_contains "$output" "would delete 1 page " "what the rule would delete"
    printf '[Archive]\nRetention=%s\n' "$rule" | in_capsule sh -c "cat >$retention"
    in_capsule systemctl reload $service
    # It would delete a third of the pages that it is for.
    wait_for 20 is_held
    assert_eq 3 "$(query length list snapshots --url https://aging.test/)" "versions while the rule waits"
    assert_status 0 archivist delete --by-retention --yes
    wait_for 20 versions_are 2
    assert_status 0 archivist why "$pinned"
    assert_contains "$output" "it is pinned, otherwise Retention=$rule would delete it" "why it stays"
    archive_aging
    wait_for 20 versions_are 2
    assert_status 0 archivist unpin "$pinned"
    wait_for 20 versions_are 1
    journal --unit $service --grep "because of Retention=$rule: $pinned" --output cat | grep -q . ||
        fail "the journal does not name $pinned"
    wait_for 20 files_are_removed
    in_capsule rm "$retention"
    in_capsule systemctl reload $service
    assert_status 0 archivist fsck
}
archive_aging() { in_capsule archivist add --plugins testfiles --tag aging --wait https://aging.test/ >/dev/null; }
is_held() { archivist status --json | gojq -e .retention_held >/dev/null; }
versions_are() { [[ $(query length list snapshots --url https://aging.test/) == "$1" ]]; }

# The unit and the orchestrator are killed while a crawl is deleted: nothing stays, and nothing else goes. Each failure doubles the
# time until the next attempt.
continues_after_kills() {
    local crawl kills=0 last
    last=$(deadline 120)
    needs archives
    crawl=$(archived $(seq -f 'https://many.test/%g' $PAGES))
    assert_eq $PAGES "$(query length list snapshots "$crawl" --limit 0)" "archived pages"
    archivist delete --yes "$crawl" >/dev/null
    until files_are_removed; do
        if in_capsule systemctl kill --signal=KILL "$unit" 2>/dev/null; then kills=$((kills + 1)); fi
        [[ $kills != 2 ]] || in_capsule systemctl kill --signal=KILL $service
        [[ $kills -lt 4 ]] || wait_for 60 files_are_removed
        [[ $EPOCHSECONDS -lt $last ]] || fail "the removal does not end"
    done
    echo "figure: $kills kills"
    assert_eq "$(rows)" "$(directories)" "directories of pages, and rows"
    assert_nothing "what is left" in_capsule find $archive -mindepth 3 -maxdepth 3 -name '.deleted-*'
    in_capsule sh -c "! test -d $archive/*/many.test" || fail "the directory of the host is left"
    # Copies that are still being removed are no problem.
    assert_status 0 archivist fsck
    wait_for 120 has_no_copy many.test
    assert_status 0 archivist fsck
}
has_no_copy() { [[ -z $(in_capsule find $store -path "*/$1/*" -name '*.tar') && $(query .deleting_copies status) == 0 ]]; }

# Of a URL that is archived three times, each snapshot leads to the next older and newer one, and all lead to their list. No file of a
# sealed snapshot changes.
snapshots_of_a_url_link_to_each_other() {
    local directory first middle last before sealed
    needs archives
    capsule cp "$(dirname "$0")/archive/versions.py" "$CAPSULE:/opt/versions.py"
    archived https://three.test/ >/dev/null
    first=$(three 0)
    assert_eq "none none none" "$(links "$first")" "links of the only snapshot"
    before=$(sums "$first")
    archived 'http://www.three.test/?utm_source=feed' >/dev/null
    archived https://three.test/#top >/dev/null
    middle=$(three 1) last=$(three 2)
    assert_eq "none $middle $last,$middle,$first" "$(links "$first")" "links of the oldest"
    assert_eq "$first $last $last,$middle,$first" "$(links "$middle")" "links of the one between"
    assert_eq "$middle none $last,$middle,$first" "$(links "$last")" "links of the newest"
    assert_eq "$before" "$(sums "$first")" "files of the sealed snapshot"
    assert_status 0 archivist fsck

    sealed="$(sums "$first")$(sums "$last")"
    assert_status 0 archivist delete --yes "$middle"
    wait_for 20 files_are_removed
    assert_eq "none $last $last,$first" "$(links "$first")" "links of the oldest after the deletion"
    assert_eq "$first none $last,$first" "$(links "$last")" "links of the newest after the deletion"
    assert_eq "$sealed" "$(sums "$first")$(sums "$last")" "files of the others"
    assert_status 0 archivist fsck

    directory=$(in_capsule sh -c "dirname $archive/urls/*/*/$first.html")
    assert_eq "archivist 2750 archivist 640" "$(in_capsule sh -c "stat -c '%U %a' $directory $directory/$last.html | xargs")" "owner and modes"
    in_capsule sh -c "cd $directory && rm $first.html && sed -i 's/href=/hr=/' index.html"
    assert_status 3 archivist fsck
    assert_contains "$output" "$first.html: the list is missing" "what it says of a missing file"
    assert_contains "$output" "index.html: it lacks the link to" "what it says of a damaged list"
    assert_status 0 archivist fsck --repair
    assert_status 0 archivist fsck
    assert_eq "none $last $last,$first" "$(links "$first")" "links after the repair"
    in_capsule rm -r $archive/urls $archive/.index/urls
    assert_status 3 archivist fsck
    assert_status 0 archivist fsck --repair
    assert_eq "$first none $last,$first" "$(links "$last")" "links of lists that were all missing"
    # Workers continue with rebuilt lists, and remove the last one with its directory.
    archived https://three.test/ >/dev/null
    middle=$last last=$(three 2)
    assert_eq "$first $last $last,$middle,$first" "$(links "$middle")" "links after another snapshot"
    assert_status 0 archivist delete --yes "$middle" "$last"
    wait_for 20 files_are_removed
    assert_eq "none none none" "$(links "$first")" "links of what is left"
    in_capsule test ! -e "$directory" || fail "'$directory' is left"
    assert_status 0 archivist fsck
}
# three N: the id of the Nth snapshot of the URL, the oldest first.
three() { query "map(.id) | sort_by(number) | .[$1]" list snapshots --url https://three.test/; }
of_three() { query '.[0].directory' list snapshots "$1"; }
links() { in_capsule python3 /opt/versions.py "$(of_three "$1")"; }
sums() { in_capsule sh -c "cd $(of_three "$1") && find . -type f | sort | xargs sha256sum"; }

cases archives asks_before_it_deletes deletes_with_files_and_lists copies_go_too refuses_what_is_not_over pinned_pages_stay retention_deletes_older_versions \
    snapshots_of_a_url_link_to_each_other continues_after_kills
