#!/bin/bash
# archivist import DIR: the data directories that ArchiveBox 0.4.21, 0.6.2 and 0.7.4 wrote of the same three local pages, without
# a browser (archivebox/data.tar.xz has them without their own HTML pages, logs and sources): counts as in their databases, a
# hostile directory, kills, deletion.
# In a short run on the stable release alone.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

boxes=/srv/boxes
archive=/var/lib/archivist/archive

clean() {
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
    for version in 0.4.21 0.6.2 0.7.4; do
        assert_status 0 archivist import --dry-run $boxes/$version
        assert_contains "$output" "ArchiveBox: 3 snapshots" "$version"
    done
    assert_eq 0 "$(query length list crawls)" "crawls after dry runs"
    before=$(in_capsule sh -c "cd $boxes && find . -printf '%p %T@ %s %m\n' | sort | sha256sum")
    for version in 0.4.21 0.6.2 0.7.4; do
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
    wait_for 20 finds_the_heron
    assert_eq "2026-11-26 2026-11-26 2026-11-26" "$(archivist versions --json http://127.0.0.1:8199/ | gojq --raw-output 'map(.recorded_at[:10]) | join(" ")')" "times of versions"
    assert_status 0 archivist fsck
}
finds_the_heron() { [[ $(archivist search --json --all heron 2>/dev/null | gojq '.hits | length') == 3 ]]; }

adds_nothing_twice() {
    needs imports_each_version
    in_capsule cp -a $boxes/0.7.4 $boxes/moved
    for directory in 0.4.21 0.6.2 0.7.4 moved; do
        assert_status 0 archivist import $boxes/$directory
        assert_contains "$output" "0 taken, 3 known" "$directory"
    done
    assert_eq 9 "$(query length list snapshots --limit 0)" snapshots
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
    local kills=0
    needs imports_each_version
    in_capsule sh -c "mkdir -p $boxes/many/archive && cd $boxes/many/archive && for n in \$(seq 300); do
        mkdir \$((1618912800 + n)) && echo \"{\\\"url\\\":\\\"http://many.test/\$n\\\",\\\"history\\\":{\\\"dom\\\":[{\\\"status\\\":\\\"succeeded\\\",
        \\\"output\\\":\\\"output.html\\\"}]}}\" >\$((1618912800 + n))/index.json && echo \"<p>\$n\" >\$((1618912800 + n))/output.html; done"
    for delay in 0.05 0.1 0.2 0.4; do
        in_capsule timeout --signal=KILL $delay archivist import $boxes/many >/dev/null 2>&1 || kills=$((kills + 1))
    done
    echo "figure: $kills kills"
    archivist import --wait $boxes/many >/dev/null || true
    wait_for 120 all_have_ended
    assert_eq 300 "$(query 'map(select(.url | startswith("http://many.test/")) | .url) | unique | length' list snapshots --limit 0)" URLs
    assert_eq 300 "$(query 'map(select(.url | startswith("http://many.test/"))) | length' list snapshots --limit 0)" snapshots
    assert_eq .lock "$(in_capsule ls -A $archive/.importing)" "what is staged"
    assert_status 0 archivist fsck
}
all_have_ended() { [[ $(query 'map(select(.status != "sealed")) | length' list snapshots --limit 0) == 0 ]]; }

deletes_all() {
    needs imports_each_version
    # shellcheck disable=SC2046 # ids
    archivist delete --yes $(query '.[].id' list crawls) >/dev/null
    wait_for 60 is_without_files
}
is_without_files() { [[ -z $(in_capsule sh -c "ls -d $archive/2*" 2>/dev/null) ]]; }

cases imports_each_version keeps_titles_tags_dates_and_files adds_nothing_twice takes_nothing_from_outside continues_after_kills \
    deletes_all
