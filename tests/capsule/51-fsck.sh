#!/bin/bash
# archivist fsck: an archive without problems, each kind of problem, what --repair does and does not do, and a check while pages
# are archived.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

archive=/var/lib/archivist/archive

clean() {
    in_capsule rm -rf $archive/20200101
    stop_site
    forget_configuration
}

prepare() {
    start_site
    plugin testsaves <<'SH'
#!/bin/sh
sleep 0.1
echo saved >saved.txt
SH
    forget_pages
    configure </dev/null
}

# page PATH FILTER: about the snapshot of that page.
page() { query "map(select(.url == \"$site$1\")) | only | $2" list snapshots --limit 0; }

# fsck EXPECTED FILTER OPTION…: asserts its exit status and prints what the jq filter makes of its document.
fsck() {
    local expected=$1 filter=$2
    shift 2
    assert_status "$expected" archivist fsck --json "$@"
    evaluate "$filter" <<<"$output"
}

kinds='[.findings[].kind] | sort'

sums() { in_capsule sh -c "cd $archive && find . -type f -path './[0-9]*/*/s*' | sort | xargs sha256sum"; }

archive_without_problems() {
    archivist add --depth 1 --wait --plugins wget,favicon,headers,title,outlinks,hashes \
        --set "URL_ALLOWLIST=^${site//./\\.}(page/1|redirect/3|hostile|js-title)?\$" "$site" >/dev/null || true
    assert_eq 5 "$(query length list snapshots --status sealed)" "archived pages"
    assert_nothing "problems" fsck 0 '[.findings[].what]'
    assert_eq "5 true true" "$(fsck 0 '.checked | [.pages, .files > 20, .digests > 20]')" "what was compared"
    assert_eq 0 "$(fsck 0 '.checked.digests' --quick)" "digests with --quick"
    assert_status 0 archivist fsck
    assert_contains "$output" ": no problem" "what it says"
    # Someone who may call the orchestrator, and not read the archive.
    assert_status 1 in_capsule setpriv --reuid=nobody --regid=nogroup --groups="$(in_capsule getent group archivist | cut -d: -f3)" archivist fsck
    assert_contains "$output" "sudo archivist fsck" "what a member may do"
}

# Lists of the archive, of its day and of a crawl, and the page about a snapshot: missing, cut, corrupt, and stale.
lists_are_compared_and_rebuilt() {
    needs archive_without_problems
    local day about before
    day=$(in_capsule sh -c "cd $archive && ls -d [0-9]*")
    about=$(page redirect/3 .directory)/index.html
    before=$(owners)
    in_capsule sh -c "cd $archive && rm index.html sites.html $about && printf '[{' >.index/$day/1.json && sed -i 's/page.1/page.l/g' $day/*/c*/index.html"
    assert_eq "list" "$(fsck 3 '[.findings[].kind] | unique')" "kinds of what was found"
    assert_contains "$(archivist fsck || true)" "rebuild it: archivist fsck --repair" "what it says"
    in_capsule test ! -e "$about" || fail "it was repaired without --repair"
    assert_eq "true" "$(fsck 0 '[.findings[].repaired] | unique' --repair)" "what was repaired"
    assert_nothing "problems afterwards" fsck 0 '[.findings[].what]'
    assert_eq "$before" "$(owners)" "owners of lists"
    assert_eq 5 "$(in_capsule grep -o "href=\"[^\"]*/s[0-9]*/index.html\"" $archive/index.html | sort -u | wc -l)" "pages of the first list"
    in_capsule grep -q "$site" "$about" || fail "$about does not name the page"
    # A list names a page that was removed.
    in_capsule mv "${about%/index.html}" /root/removed
    assert_contains "$(fsck 3 '[.findings[].what] | join("; ")')" "which is gone" "what it says of a removed page"
    in_capsule mv /root/removed "${about%/index.html}"
    # Workers continue with rebuilt lists.
    archivist add --wait --plugins testsaves http://listed.test/ >/dev/null
    assert_contains "$(in_capsule cat $archive/index.html)" listed.test "the first list"
    assert_nothing "problems after another page" fsck 0 '[.findings[].what]'
}

owners() { in_capsule sh -c "cd $archive && stat -c '%n %U %G %a' index.html days.html [0-9]*/index.html [0-9]*/*/s*/index.html .index/*/*.json"; }

damage_is_found_and_nothing_is_replaced() {
    needs archive_without_problems
    local directory before
    directory=$(page page/1 .directory)
    in_capsule sh -c "cd $directory && printf x >>title/title.txt && rm headers/headers.json"
    in_capsule python3 -c "
import sys
with open('$directory/favicon/favicon.ico', 'r+b') as file:
    byte = file.read(1)
    file.seek(0)
    file.write(bytes([byte[0] ^ 1]))"
    assert_eq "digest file size" "$(fsck 3 "$kinds")" "what was found"
    assert_eq "file size" "$(fsck 3 "$kinds" --quick)" "what was found with --quick"
    before=$(sums)
    assert_eq "false" "$(fsck 3 '[.findings[].repaired] | unique' --repair)" "what was repaired"
    assert_eq "$before" "$(sums)" "files after --repair"
    assert_status 3 archivist fsck
    assert_contains "$output" "headers/headers.json: the file is missing" "what it says"
}

removed_page_is_archived_again() {
    needs damage_is_found_and_nothing_is_replaced
    local id directory
    id=$(page js-title .id) directory=$(page js-title .directory)
    in_capsule rm -rf "$directory"
    assert_contains "$(archivist why "$id")" "was removed; to archive it again" "why $id"
    assert_eq "directory false" "$(fsck 3 ".findings[] | select(.id == \"$id\") | [.kind, .repaired]")" "what was found"
    in_capsule test ! -e "$directory" || fail "it was repaired without --repair"
    assert_eq "true" "$(fsck 3 ".findings[] | select(.id == \"$id\") | .repaired" --repair)" "what was repaired"
    wait_for 120 is_sealed js-title
    in_capsule test -s "$directory/headers/headers.json" || fail "the page was not archived again"
    assert_eq "digest file size" "$(fsck 3 "$kinds")" "what is left"
}

is_sealed() { [[ $(page "$1" .status) == sealed ]]; }

unknown_directory_and_its_id() {
    needs removed_page_is_archived_again
    local crawl
    in_capsule install -d -o archivist -g archivist-hook -m 0750 $archive/20200101 $archive/20200101/old.test $archive/20200101/old.test/s5000
    assert_eq "digest file ids size unknown" "$(fsck 3 "$kinds")" "what was found"
    assert_contains "$(archivist doctor || true)" "the database does not know the page in '$archive/20200101/old.test/s5000'" "the doctor"
    assert_eq "ids" "$(fsck 3 '[.findings[] | select(.repaired) | .kind]' --repair)" "what was repaired"
    crawl=$(add --plugins testsaves http://new.test/)
    wait_for 60 is_over "$crawl"
    assert_eq s5001 "$(query '.[0].id' list snapshots "$crawl")" "id of the next page"
    assert_eq "digest file size unknown" "$(fsck 3 "$kinds")" "what is left"
    in_capsule test -d $archive/20200101/old.test/s5000 || fail "the directory was moved away"
}

# Otherwise --repair would archive everything again.
nothing_is_compared_without_the_archive() {
    needs unknown_directory_and_its_id
    in_capsule mount -t tmpfs -o mode=750 tmpfs $archive
    assert_status 1 archivist fsck --repair
    unmount $archive
    assert_contains "$output" "is its file system mounted?" "what it says"
    assert_eq "digest file size unknown" "$(fsck 3 "$kinds")" "what was found with the archive"
}

# Pages that are being archived are no problems.
check_while_pages_are_archived() {
    needs unknown_directory_and_its_id
    local crawl rounds=0
    crawl=$(in_capsule sh -c 'seq -f http://%g.busy.test/ 60 | archivist add --json --plugins testsaves -' | evaluate .crawl)
    until is_over "$crawl"; do
        assert_eq "digest file size unknown" "$(fsck 3 "$kinds")" "what was found meanwhile"
        rounds=$((rounds + 1))
    done
    ((rounds > 1)) || fail "the crawl was over at once"
    assert_eq "digest file size unknown" "$(fsck 3 "$kinds")" "what was found afterwards"
}

# A recording that was imported is named after its digest.
imported_recordings_are_compared() {
    needs archive_without_problems
    local recording=/root/recording.warc.gz imported found='[.findings[] | select(.path | contains(".imported")) | .kind]'
    in_capsule cp "$(page page/1 .directory)/wget/warc/page.warc.gz" $recording
    assert_status 0 archivist import --wait $recording
    assert_nothing "problems of the imported recording" fsck 3 "$found"
    imported=$(in_capsule sh -c "ls $archive/.imported/*")
    in_capsule sh -c "printf x >>$imported"
    assert_eq digest "$(fsck 3 "$found")" "a damaged recording"
    in_capsule mv "$imported" $archive/.imported/other.warc.gz
    assert_eq "file unknown" "$(fsck 3 "$found | sort")" "a missing and an unknown recording"
    in_capsule rm $archive/.imported/other.warc.gz
    assert_status 0 archivist import $recording
    assert_contains "$output" "nothing new" "an import again"
    assert_nothing "problems after it was imported again" fsck 3 "$found"
}

# An older copy of the database is put into place: it does not know a page whose directory is there.
page_of_a_newer_database_is_taken_back() {
    local url=${site}page/9 directory
    archivist add --wait --plugins wget "${site}page/8" >/dev/null
    stop_all
    in_capsule sh -c 'rm -rf /root/older && mkdir /root/older && cp -a /var/lib/archivist/archivist.sqlite3* /root/older'
    archivist add --wait --plugins wget,wacz "$url" >/dev/null
    directory=$(query "map(select(.url == \"$url\")) | only.directory" list snapshots --limit 0)
    stop_all
    in_capsule sh -c 'rm /var/lib/archivist/archivist.sqlite3* && mv /root/older/* /var/lib/archivist'
    assert_status 3 archivist fsck --quick
    assert_contains "$output" "$directory: no row has this directory of s" "the finding"
    assert_contains "$output" "→ archivist import $directory/wacz/page.wacz" "the repair"
    # The directory of its crawl is left as it is.
    assert_status 3 archivist fsck --quick --repair
    assert_contains "$output" "the recording of '$directory' is imported" "what was repaired"
    wait_for 20 is_listed "$url"
    # Nothing is removed, and nothing is taken twice.
    assert_status 3 archivist fsck --quick --repair
    assert_contains "$output" "the archive has all pages of this file" "the second repair"
    # shellcheck disable=SC2046 # a path a word
    in_capsule rm -r $(fsck 3 '[.findings[] | select(.kind == "unknown") | .path]' --quick)
    wait_for 20 index_is_idle
    # Lists link to the directory until they are rebuilt. The damage of an earlier case stays.
    assert_status 3 archivist fsck --quick --repair
    assert_nothing "problems" fsck 3 '[.findings[] | select(.kind | IN("file", "size") | not) | .what]' --quick
}
index_is_idle() { ! has_unit archivist-index-pages.service; }
is_listed() { [[ $(query "map(select(.url == \"$1\" and .status == \"sealed\")) | length" list snapshots --limit 0) == 1 ]]; }

cases archive_without_problems lists_are_compared_and_rebuilt damage_is_found_and_nothing_is_replaced removed_page_is_archived_again unknown_directory_and_its_id \
    nothing_is_compared_without_the_archive check_while_pages_are_archived imported_recordings_are_compared \
    page_of_a_newer_database_is_taken_back
