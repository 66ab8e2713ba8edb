#!/bin/bash
# WACZ_DEDUPE: recordings of a second crawl take few bytes, each page is whole without the others, and bodies go with their last page.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

archive=/var/lib/archivist/archive
store=/srv/shared-store
www=/srv/shared-www
PAGES=8
CONFIGURATION='[Orchestrator]
RetrySec=1s
HostDelaySec=0
[Hooks]
Reach=any
[Config]
WACZ_DEDUPE=true'

clean() {
    in_capsule systemctl stop test-shared.service 2>/dev/null || true
    in_capsule rm -rf $store $www
    forget_configuration
}

prepare() {
    forget_pages
    in_capsule install -d -o archivist -g archivist $store
    in_capsule python3 - <<PYTHON
import os, random
os.makedirs("$www")
random.seed(7)
words = lambda count: " ".join("%x" % random.getrandbits(32) for _ in range(count))
files = {"style.css": "/* " + words(2000) + " */", "app.js": "// " + words(4000)}
for number in range($PAGES):
    files["data%d" % number] = words(5000)
    files["%d.html" % number] = (
        "<!doctype html><title>Page %d</title><link rel=stylesheet href=style.css><script src=app.js></script>"
        "<script>fetch('data%d')</script><h1>Page %d</h1><p>%s</p>" % (number, number, number, words(300))
    )
for name, text in files.items():
    with open(os.path.join("$www", name), "w", encoding="utf-8") as file:
        file.write(text)
PYTHON
    in_capsule systemd-run --quiet --collect --unit=test-shared --property=Type=exec --working-directory=$www \
        python3 -u -m http.server 8477 --bind 127.0.0.1
    wait_for 20 in_capsule python3 -c "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8477/0.html')"
    configure <<<"$CONFIGURATION"
}

# Archives the pages and prints the id of their crawl.
archived() {
    local answer status=0
    answer=$(seq -f 'http://127.0.0.1:8477/%g.html' 0 $((PAGES - 1)) |
        in_capsule archivist add --json --plugins wacz,hashes --wait -) || status=$?
    [[ $status -eq 0 ]] || fail "status $status of add, with $(archivist list results --status failed)"
    gojq --raw-output --slurp '.[0].crawl' <<<"$answer"
}

# Bytes on the disk of all recordings: a file with several names counts once.
bytes() { in_capsule sh -c "du --total --bytes --summarize $archive/*/127.0.0.1*/s*/wacz | tail -1 | cut -f1"; }

pages_of() { query 'map(.id)' list snapshots "$1" --limit 0; }

assert_whole() {
    local page
    for page; do
        assert_status 0 archivist verify "$page"
        assert_contains "$output" "the recording shows the page" "$page"
    done
}

second_crawl_is_small() {
    local once both
    first=$(archived)
    once=$(bytes)
    second=$(archived)
    both=$(bytes)
    echo "figure: $once bytes for $PAGES pages, $((both - once)) more for the same again"
    [[ $(((both - once) * 100)) -le $((once * 15)) ]] || fail "the second crawl takes $((both - once)) of $once bytes"
    in_capsule sh -c "test -z \"\$(find $archive -name '*.warc.gz' -perm /0222)\"" || fail "a body can be written to"
    assert_eq "2700 archivist" "$(in_capsule stat --format='%a %U' $archive/.bodies)" "who finds bodies of others"
    # Digests of files are those of the files that share bodies.
    assert_status 0 archivist fsck
    keep first second
}

pages_are_whole() {
    local file=/tmp/shared-export/page.wacz
    needs second_crawl_is_small
    # shellcheck disable=SC2046 # ids
    set -- $(pages_of "$second")
    assert_whole "$1" "$2"
    # Away from the bodies.
    in_capsule mkdir -p ${file%/*}
    assert_status 0 archivist export "$1" -o $file
    assert_whole $file
    in_capsule rm -r ${file%/*}
}

pages_are_whole_without_the_first() {
    needs second_crawl_is_small
    assert_status 0 archivist delete --yes "$first"
    wait_for 20 files_are_removed
    # shellcheck disable=SC2046 # ids
    set -- $(pages_of "$second")
    assert_whole "$1" "$2"
    assert_status 0 archivist fsck
}

# The files of all pages go to the store; those of one come back with its bodies, as files of its own.
copies_in_the_store_are_whole() {
    local page directory
    needs second_crawl_is_small
    read -r page directory <<<"$(query '.[0] | [.id, .directory]' list snapshots "$second" --limit 0)"
    configure <<<"$CONFIGURATION"$'\n[Fleet]\nStore='"$store"$'\nKeepLocal=never'
    wait_for 60 no_recording_is_left
    assert_whole "$page"
    in_capsule sh -c "test -n \"\$(ls $directory/wacz/bodies)\"" || fail "no body came back"
    assert_status 0 archivist fsck
}
# find(1) fails if a directory goes away meanwhile.
no_recording_is_left() {
    local left
    left=$(in_capsule find $archive -mindepth 4 -name page.wacz 2>&1) && [[ -z $left ]] || return 1
    [[ -z $(in_capsule systemctl list-units --no-legend 'archivist-store-*') ]]
}

# The archive keeps no body of pages that are gone.
bodies_go_with_their_last_page() {
    needs second_crawl_is_small
    [[ $(in_capsule find $archive/.bodies -type f | wc -l) -gt 0 ]] || fail "no body is shared"
    assert_status 0 archivist delete --yes "$second"
    wait_for 30 files_are_removed
    assert_nothing "what is left" in_capsule find $archive/.bodies -type f
}

cases second_crawl_is_small pages_are_whole pages_are_whole_without_the_first copies_in_the_store_are_whole bodies_go_with_their_last_page
