#!/bin/bash
# archivist import DIR: the data directories that ArchiveBox 0.4.21, 0.5.4, 0.6.2 and 0.7.4 wrote of the same three local pages, without
# a browser, the last one as 0.9.73 upgraded it, and one of 0.9.73's own (archivebox/data.tar.xz has them without their own HTML pages,
# logs, sources, settings and accounts): counts as in their databases, a hostile directory, kills, deletion.
# tests/cli_bus has one that is older than the database. With EXTENT=full, a directory on the file system of the archive, with and without reflinks.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

boxes=/srv/boxes
archive=/var/lib/archivist/archive
image=/var/cache/archivist-test.img
disk=/srv/disk

clean() {
    detach
    in_capsule rm -rf $boxes
    forget_configuration
}

prepare() {
    forget_pages
    printf '[Orchestrator]\nRetrySec=1s\nHostDelaySec=0\n' | configure
    in_capsule mkdir -p $boxes
    xz --decompress --stdout "$ROOT/tests/capsule/archivebox/data.tar.xz" | in_capsule tar -C $boxes -xf -
    # As the container of ArchiveBox leaves it: of another user, and closed to all others.
    in_capsule chown -R 911:911 $boxes
    in_capsule chmod -R go= $boxes
}

# results_of CRAWL STATUS: the number of results that ArchiveBox had.
results_of() {
    query "map(select(.hook | startswith(\"archivebox\")) | select(.status == \"$2\")) | length" list results "$1" --limit 0
}
crawl_of() { query "map(select(.config.IMPORT_SOURCE == \"$1\")) | .[0].id" list crawls; }

imports_each_version() {
    local version crawl failed succeeded
    for version in 0.4.21 0.5.4 0.6.2 0.7.4; do
        assert_status 0 archivist import --dry-run $boxes/$version
        assert_contains "$output" "ArchiveBox: 3 snapshots" "$version"
    done
    assert_eq 0 "$(query length list crawls)" "crawls after dry runs"
    before=$(in_capsule sh -c "cd $boxes && find . -printf '%p %T@ %s %m\n' | sort | sha256sum")
    for version in 0.4.21 0.5.4 0.6.2 0.7.4; do
        # Results of ArchiveBox failed.
        assert_status 3 archivist import --wait $boxes/$version
        assert_contains "$output" "3 taken, 0 known, 0 without a directory, 0 with files left out, 0 refused" "$version"
        crawl=$(crawl_of $version)
        # As counted in its database, and in the files index.json of 0.4.
        case $version in
        0.4.21) succeeded=5 failed=4 ;;
        *) succeeded=8 failed=4 ;;
        esac
        assert_eq "$succeeded $failed" "$(results_of "$crawl" succeeded) $(results_of "$crawl" failed)" "results of $version"
    done
    assert_eq "$before" "$(in_capsule sh -c "cd $boxes && find . -printf '%p %T@ %s %m\n' | sort | sha256sum")" "the directories"
    keep crawl
}

keeps_titles_tags_dates_and_files() {
    local page directory
    needs imports_each_version
    page=$(query '.[] | select(.url | endswith("8199/")) | .id' list snapshots "$crawl")
    assert_eq "birds two+words 日本" "$(query '.[] | select(.url | endswith("8199/")) | .tags | sort | join(" ")' list snapshots "$crawl")" tags
    assert_eq "2026-11-26T20:23:05.187259Z" "$(query '.[] | select(.url | endswith("8199/")) | .bookmarked_at' list snapshots "$crawl")" date
    assert_eq "2026-11-26T20:23:05.374Z" "$(query '.[] | select(.plugin == "wget") | .started_at' list results "$page")" "start of wget"
    directory=$(query '.[0].directory' list snapshots "$page")
    for file in wget/127.0.0.1+8199/dot.png headers/headers.json import/archivebox.json import/index.json; do
        in_capsule test -s "$directory/$file" || fail "no $file in $directory"
    done
    in_capsule grep -q 'href="./wget/127.0.0.1[^"]*8199/index.html"' "$directory/index.html" || fail "the page does not lead to the copy"
    assert_contains "$(archivist list snapshots "$crawl")" "日本 second — page" titles
    # Version 0.7 records no result of the only text that one of the pages has.
    for directory in $(query '.[].directory' list snapshots "$crawl"); do
        in_capsule test -s "$directory/text/text.txt" || fail "no text in $directory"
    done
    wait_for 20 finds_the_heron
    assert_eq "2026-11-27 2026-11-26 2026-11-26 2026-11-26" "$(archivist versions --json http://127.0.0.1:8199/ | gojq --raw-output 'map(.visited_at[:10]) | join(" ")')" "times of versions"
    assert_status 0 archivist fsck
}
finds_the_heron() { [[ $(archivist search --json --all heron 2>/dev/null | gojq '.hits | length') == 4 ]]; }

adds_nothing_twice() {
    needs imports_each_version
    in_capsule cp -a $boxes/0.7.4 $boxes/moved
    for directory in 0.4.21 0.5.4 0.6.2 0.7.4 moved; do
        assert_status 0 archivist import $boxes/$directory
        assert_contains "$output" "0 taken, 3 known" "$directory"
    done
    assert_eq 12 "$(query length list snapshots --limit 0)" snapshots
    assert_status 2 archivist import $boxes
    assert_contains "$output" "is no data directory of ArchiveBox" "another directory"
    # A retry runs no hook of ArchiveBox, and what it had recorded stays.
    archivist retry "$crawl" >/dev/null || true
    assert_eq 4 "$(results_of "$crawl" failed)" "failed results after a retry"
    assert_contains "$(query 'map(.error) | join(" ")' list results "$crawl" --limit 0)" "Failed to chmod" reasons
}

takes_nothing_from_outside() {
    local at=$boxes/hostile/archive
    needs imports_each_version
    in_capsule sh -c "mkdir -p $at/1618912800 $at/1618912801/wget $at/1618912802 && cd $at &&
        echo '{\"url\":\"http://a.test/#2021-04-20T10:00:00\",\"history\":{\"dom\":[{\"status\":\"succeeded\",\"output\":\"../../x\"}],
            \"../../etc\":[{\"status\":\"succeeded\"}]}}' >1618912800/index.json &&
        ln -s /etc/shadow 1618912800/output.html && ln -s /etc 1618912800/warc && mkfifo 1618912800/favicon.ico &&
        echo '{\"url\":' >1618912801/index.json && ln -s /etc 1618912803 &&
        echo '{\"url\":\"file:///etc/shadow\"}' >1618912802/index.json && head -c 8192 /dev/urandom >../index.sqlite3"
    assert_status 3 archivist import --wait $boxes/hostile
    assert_contains "$output" "index.sqlite3 cannot be used: file is not a database" "the database"
    assert_contains "$output" "1618912801: its index is damaged" "an index"
    assert_contains "$output" "file: URLs cannot be archived" "a URL"
    assert_contains "$output" "dom: 1 without files" "a link"
    assert_contains "$output" "../../etc: 1 unknown" "an extractor"
    assert_contains "$output" "1 taken, 0 known, 0 without a directory, 1 with files left out, 1 refused" "the report"
    assert_eq "" "$(in_capsule grep -rls "^root:[^ ]*:[0-9]" $archive)" "files with passwords"
    assert_eq 1 "$(query 'map(select(.url == "http://a.test/")) | length' list snapshots)" "the URL without its time"
}

# Killed at any time: the next command takes the rest, and nothing twice.
continues_after_kills() {
    local kills=0 count=100
    [[ ${EXTENT-} != full ]] || count=300
    needs imports_each_version
    in_capsule sh -c "mkdir -p $boxes/many/archive && cd $boxes/many/archive && for n in \$(seq $count); do
        mkdir \$((1618912800 + n)) && echo \"{\\\"url\\\":\\\"http://many.test/\$n\\\",\\\"history\\\":{\\\"dom\\\":[{\\\"status\\\":\\\"succeeded\\\",
        \\\"output\\\":\\\"output.html\\\"}]}}\" >\$((1618912800 + n))/index.json && echo \"<p>\$n\" >\$((1618912800 + n))/output.html; done"
    for delay in 0.05 0.1 0.2 0.4; do
        in_capsule timeout --signal=KILL $delay archivist import $boxes/many >/dev/null 2>&1 || kills=$((kills + 1))
    done
    echo "figure: $kills kills"
    archivist import --wait $boxes/many >/dev/null || true
    wait_for 120 all_have_ended
    assert_eq $count "$(query 'map(select(.url | startswith("http://many.test/")) | .url) | unique | length' list snapshots --limit 0)" URLs
    assert_eq $count "$(query 'map(select(.url | startswith("http://many.test/"))) | length' list snapshots --limit 0)" snapshots
    assert_eq .lock "$(in_capsule ls -A $archive/.importing)" "what is staged"
    assert_status 0 archivist fsck
}
all_have_ended() { [[ $(query 'map(select(.status != "sealed")) | length' list snapshots --limit 0) == 0 ]]; }

# A directory of 0.7.4 that 0.9.73 has upgraded: the same snapshots, whose files are where the older version wrote them, below the
# directories of 0.9.
takes_an_upgraded_directory() {
    local page directory
    needs imports_each_version
    assert_status 0 archivist import $boxes/0.9.73
    assert_contains "$output" "0 taken, 3 known" "after the directory that was upgraded"
    archivist delete --yes "$crawl" >/dev/null
    assert_status 3 archivist import --wait $boxes/0.9.73
    assert_contains "$output" "3 taken, 0 known, 0 without a directory, 0 with files left out, 0 refused" "the upgraded directory"
    crawl=$(crawl_of 0.9.73)
    assert_eq "8 4" "$(results_of "$crawl" succeeded) $(results_of "$crawl" failed)" "results of 0.9.73"
    page=$(query '.[] | select(.url | endswith("8199/")) | .id' list snapshots "$crawl")
    directory=$(query '.[0].directory' list snapshots "$page")
    for file in wget/127.0.0.1+8199/dot.png headers/headers.json text/text.txt; do
        in_capsule test -s "$directory/$file" || fail "no $file in $directory"
    done
    assert_eq "birds two+words 日本" "$(query '.[] | select(.url | endswith("8199/")) | .tags | sort | join(" ")' list snapshots "$crawl")" tags
    assert_status 0 archivist fsck
}

deletes_all() {
    needs imports_each_version
    # shellcheck disable=SC2046 # ids
    archivist delete --yes $(query '.[].id' list crawls) >/dev/null
    wait_for 60 is_without_files
}
is_without_files() { [[ -z $(in_capsule sh -c "ls -d $archive/2*" 2>/dev/null) ]]; }

# Pages that 0.9.73 archived itself, also without its database: two.html twice, and one page that is missing.
takes_a_directory_of_0_9() {
    local own=$boxes/0.9.73-own how
    needs deletes_all
    for how in "with its database" "without it"; do
        assert_status 3 archivist import --wait $own
        assert_contains "$output" "4 taken, 0 known, 0 without a directory, 0 with files left out, 0 refused" "$how"
        assert_eq "failed=1 noresults=2 succeeded=11" "$(query 'map(select(.hook | startswith("archivebox")) | .status) | group_by(.)
            | map("\(.[0])=\(length)") | join(" ")' list results --limit 0)" "results $how"
        assert_eq "1 URLs parsed" "$(query 'of("parse_html_urls") | map(select(.status == "succeeded").output) | only' list results --limit 0)" "a sentence $how"
        assert_eq 2 "$(archivist versions --json http://127.0.0.1:8299/two.html | gojq length)" "versions $how"
        assert_eq "birds 日本" "$(query '[.[] | select(.url | endswith("8299/")) | .tags[]] | sort | join(" ")' list snapshots)" "tags $how"
        # shellcheck disable=SC2046 # ids
        archivist delete --yes $(query '.[].id' list crawls) >/dev/null
        wait_for 60 is_without_files
        in_capsule rm -f $own/index.sqlite3
    done
}

# attach MKFS ARGUMENT…: a new file system (sparse, with MinFreeSpace= to spare) with the archive, which is a mount of its own, and a
# directory of ArchiveBox with 80 MB.
attach() {
    local maker=$1
    command -v "$maker" >/dev/null || skip "$maker is not installed: apt install xfsprogs e2fsprogs"
    detach
    forget_pages
    in_capsule truncate --size=3G $image
    "$@" "$("$ROOT/tests/machine/capsule" path "$CAPSULE")$image" >/dev/null
    in_capsule sh -c "[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
        for n in 0 1 2 3 4 5 6 7; do [ -e /dev/loop\$n ] || mknod /dev/loop\$n b 7 \$n; done
        mkdir -p $disk && mount -o loop $image $disk" || skip "no loop devices"
    in_capsule sh -c "mkdir $disk/archive && mount --bind $disk/archive $archive && systemd-tmpfiles --create archivist.conf"
    printf '[Orchestrator]\nHostDelaySec=0\n' | configure
    in_capsule python3 - <<PY
import json, os
for number in range(2):
    directory = f"$disk/box/archive/{1618912800 + number}"
    os.makedirs(f"{directory}/media")
    with open(f"{directory}/media/video.mp4", "wb") as file:
        file.write(os.urandom(40_000_001))
    with open(f"{directory}/index.json", "w") as file:
        json.dump({"url": f"http://box.test/{number}", "history": {"media": [{"status": "succeeded", "output": "media"}]}}, file)
PY
}

detach() {
    unmount $archive
    unmount $disk
    in_capsule rm -f $image
}

used() { in_capsule sh -c "sync --file-system $disk && df --output=used --block-size=1 $disk | tail -n 1"; }

# growth COMMAND…: sets $grown to the bytes by which the used ones grow.
growth() {
    local before
    before=$(used)
    assert_status 0 "$@"
    grown=$(($(used) - before))
}

# digests DIRECTORY NAME: of all files of this name.
digests() { in_capsule find "$1" -name "$2" -exec sha256sum {} + | cut -d ' ' -f 1 | sort; }

# assert_same COUNT FROM TO NAME: two directories have as many files of this name, with the same content.
assert_same() {
    local digests
    digests=$(digests "$2" "$4")
    assert_eq "$1" "$(wc -l <<<"$digests")" "$4 in $2"
    assert_eq "$digests" "$(digests "$3" "$4")" "$4 in $3"
}

shares_blocks_on_one_file_system() {
    local grown
    [[ ${EXTENT-} == full ]] || skip "writes 300 MB: only in the full run"
    attach mkfs.xfs -q -m reflink=1
    growth archivist import --wait $disk/box
    figure "used by a directory of ArchiveBox with 80000002 bytes: $grown"
    ((grown < 1600000)) || fail "the import of 80 MB takes $grown bytes"
    assert_same 2 $disk/box $archive video.mp4
    in_capsule python3 - <<PY
import os
os.makedirs("$disk/saved/page_files")
with open("$disk/saved/page.html", "w") as file:
    file.write("<!DOCTYPE html>\n<!-- saved from url=(0019)http://saved.test/a -->\n<title>A</title><img src='page_files/large.png'>")
with open("$disk/saved/page_files/large.png", "wb") as file:
    file.write(os.urandom(40_000_001))
def record(number, path, kind, body):
    body = b"HTTP/1.1 200 OK\r\nContent-Type: " + kind + b"\r\n\r\n" + body
    head = (f"WARC/1.0\r\nWARC-Type: response\r\nWARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-{number:012d}>\r\n"
        f"WARC-Date: 2021-04-20T10:00:00Z\r\nWARC-Target-URI: http://warc.test/{path}\r\n"
        f"Content-Type: application/http; msgtype=response\r\nContent-Length: {len(body)}\r\n\r\n")
    return head.encode() + body + b"\r\n\r\n"
with open("$disk/saved/large.warc", "wb") as file:
    file.write(record(1, "", b"text/html", b"<!DOCTYPE html><title>W</title><p>text"))
    file.write(record(2, "large.mp4", b"video/mp4", os.urandom(40_000_000)))
PY
    growth archivist import --wait $disk/saved/page.html
    ((grown < 800000)) || fail "a saved page of 40 MB takes $grown bytes"
    assert_same 1 $disk/saved $archive large.png
    growth archivist import --wait $disk/saved/large.warc
    ((grown < 800000)) || fail "a recording of 40 MB takes $grown bytes"
    assert_eq "$(digests $disk/saved large.warc)" "$(digests $archive/.imported '*.warc')" "the recording"
    growth archivist backup $disk/backup
    figure "used by a backup of 160 MB: $grown"
    ((grown < 3200000)) || fail "a backup of 160 MB takes $grown bytes"
    assert_same 2 $archive $disk/backup video.mp4
    detach
}

copies_without_reflinks() {
    local grown
    [[ ${EXTENT-} == full ]] || skip "writes 300 MB: only in the full run"
    attach mkfs.ext4 -q -F -m 0
    growth archivist import --wait $disk/box
    ((grown >= 80000002)) || fail "ext4 shares no blocks, and the import of 80 MB takes $grown bytes"
    assert_same 2 $disk/box $archive video.mp4
    detach
}

cases imports_each_version keeps_titles_tags_dates_and_files adds_nothing_twice takes_nothing_from_outside continues_after_kills takes_an_upgraded_directory deletes_all takes_a_directory_of_0_9 shares_blocks_on_one_file_system copies_without_reflinks
