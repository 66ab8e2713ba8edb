#!/bin/bash
# F27: a machine was copied with its identity, database and keys, as by cp -a, and both archive into one archive at the same time:
# no file of an earlier page or of the other machine's pages changes, and both machines archive all of their pages.
# In a full run alone: it boots a second machine.
source "$(dirname "$0")/lib.sh"

PAGES=$(times 15 150)
archive=/var/lib/archivist/archive
twins=("$CAPSULE-a" "$CAPSULE-b")
sums=$work/sums

clean() {
    for twin in "${twins[@]}"; do capsule stop "$twin" 2>/dev/null || true; done
    restart
    forget_configuration
}

prepare() {
    # The files of earlier tests were damaged on purpose.
    forget_pages
    plugin testsaves <<'SH'
#!/bin/sh
for argument; do
    case $argument in --url=*) echo "${argument#*=}" >address.txt ;; esac
done
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "address.txt"}'
SH
    configure </dev/null
}

# archive_pages NAME: archives $PAGES pages of one host in the present capsule.
archive_pages() {
    local crawl
    crawl=$(in_capsule sh -c "seq -f http://copied.test/$1/%g $PAGES | archivist add --json --plugins testsaves -" | evaluate '.crawl')
    finish "$crawl" 300
    assert_eq "$PAGES succeeded" "$(query '[length, (map(.status) | unique[])]' list results "$crawl" --limit 0)" "results of $1"
}

files() { in_capsule sh -c "cd $archive && find . -path './[0-9]*/*/s[0-9]*' -type f -print0 | sort -z | xargs -0 sha256sum"; }

# Each page of NAME that this machine has is in the directory that its row names.
assert_own() {
    local id url directory
    while read -r id url directory; do
        assert_eq "$url" "$(in_capsule cat "$directory/testsaves/address.txt")" "the file of $id"
    done < <(query ".[] | select(.url | contains(\"/$1/\")) | [.id, .url, .directory]" list snapshots --limit 0)
}

# The directory of the archive belongs to the machine of the capsules, and both copies have it as a file system of theirs.
both_archive_at_the_same_time() {
    local twin changed working=()
    archive_pages before
    files >"$sums"
    in_capsule systemctl stop $service
    in_capsule tar -C ${archive%/*} -cp archive | tar -C "$work" -xp --numeric-owner
    for twin in "${twins[@]}"; do
        capsule clone "$CAPSULE" "$twin"
        capsule boot "$twin" "$RELEASE" --keep --bind "$work/archive:$archive"
        (CAPSULE=$twin restart)
    done
    assert_eq "$(capsule run "${twins[0]}" cat /etc/machine-id)" "$(capsule run "${twins[1]}" cat /etc/machine-id)" "identity of the machines"
    for twin in "${twins[@]}"; do
        (CAPSULE=$twin archive_pages "${twin##*-}") &
        working+=($!)
    done
    for twin in "${working[@]}"; do wait "$twin"; done
    changed=$(env --chdir="$work/archive" sha256sum --quiet --check - 2>&1 <"$sums" || true)
    assert_eq "" "$changed" "files of earlier pages that changed"
    for twin in "${twins[@]}"; do (CAPSULE=$twin assert_own "${twin##*-}"); done
    assert_eq $((3 * PAGES)) "$(cat "$work"/archive/[0-9]*/copied.test/s*/testsaves/address.txt | sort -u | wc -l)" "saved pages"
    figure "F27 pages of two machines with one identity: $((2 * PAGES)) next to $PAGES earlier ones, files changed: 0, directories that were taken: $(
        find "$work"/archive/[0-9]*/copied.test -maxdepth 1 -name 's*-*' | wc -l)"
}

# Each knows the pages of the other as directories without a row, and none of its own is damaged.
each_check_finds_its_own_pages_intact() {
    needs both_archive_at_the_same_time
    local twin found
    for twin in "${twins[@]}"; do
        found=$(CAPSULE=$twin archivist fsck --json || true)
        assert_eq "" "$(evaluate '.findings[] | select(.kind | IN("directory", "file", "size", "digest")) | .what' <<<"$found")" "damage on $twin"
        assert_eq true "$(evaluate 'any(.findings[]; .kind == "unknown")' <<<"$found")" "pages of the other machine on $twin"
    done
}

cases both_archive_at_the_same_time each_check_finds_its_own_pages_intact
