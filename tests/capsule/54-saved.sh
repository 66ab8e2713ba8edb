#!/bin/bash
# archivist import of pages that other programs saved: SingleFile and Chromium wrote saved/single.html and saved/page.mhtml of one
# local page; the others are written here by their documentation. Files, times, texts, and entries that are kept
# without a visit. tests/cli_bus has hostile files.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

saved=/srv/saved
archive=/var/lib/archivist/archive
page=http://127.0.0.1:18611/

clean() {
    in_capsule rm -rf $saved
    forget_configuration
}

prepare() {
    forget_pages
    printf '[Orchestrator]\nRetrySec=1s\nHostDelaySec=0\n' | configure
    in_capsule rm -rf $saved
    capsule cp "$ROOT/tests/capsule/saved" "$CAPSULE:$saved"
    in_capsule python3 - <<'PYTHON'
import os, plistlib, zipfile

os.chdir("/srv/saved")
html = '<!doctype html><html{}><head><meta charset="utf-8"><title>{}</title></head><body><p>{}</p><img src="p.png"></body></html>'
scrap = ' data-scrapbook-source="http://{}.test/" data-scrapbook-create="20210203040506789"'

def archive(name, kind):
    with open(name, "wb") as file:
        plistlib.dump({"WebMainResource": {
            "WebResourceURL": "http://%s.test/" % name.split(".")[0], "WebResourceMIMEType": "text/html",
            "WebResourceTextEncodingName": "UTF-8", "WebResourceFrameName": "",
            "WebResourceData": html.format("", "Web archive", name.split(".")[0] + "falter").encode(),
        }, "WebSubresources": [{"WebResourceData": b"\x89PNG" * 1000, "WebResourceURL": "http://binary.test/p.png"}]}, file, fmt=kind)

archive("binary.webarchive", plistlib.FMT_BINARY)
archive("xml.webarchive", plistlib.FMT_XML)
with zipfile.ZipFile("page.htz", "w", zipfile.ZIP_DEFLATED) as file:
    file.writestr("index.html", html.format(scrap.format("htz"), "HTZ", "Schwalbenschwanz"))
    file.writestr("p.png", b"\x89PNG")
with zipfile.ZipFile("page.maff", "w", zipfile.ZIP_DEFLATED) as file:
    file.writestr("20210203040506789/index.html", html.format("", "MAFF", "Trauermantel"))
    file.writestr("20210203040506789/index.rdf", '''<?xml version="1.0"?>
<RDF:RDF xmlns:MAF="http://maf.mozdev.org/metadata/rdf#" xmlns:RDF="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<RDF:Description RDF:about="urn:root"><MAF:originalurl RDF:resource="http://maff.test/?a&amp;b"/><MAF:title RDF:resource="MAFF"/>
<MAF:archivetime RDF:resource="Wed, 03 Feb 2021 04:05:06 GMT"/><MAF:indexfilename RDF:resource="index.html"/></RDF:Description></RDF:RDF>''')
comment = "<!--\n Page saved with SingleFile \n url: http://sfz.test/ \n saved date: Fri Nov 27 2026 09:06:03 GMT+0000 (UTC)\n-->"
with open("sfz.html", "w") as file:
    file.write("<!DOCTYPE html> <html data-sfz>%s<meta charset=windows-1252><title></title><!--" % comment)
with zipfile.ZipFile("sfz.html", "a", zipfile.ZIP_DEFLATED) as file:
    file.writestr("index.html", comment + html.format("", "Packed", "Ordensband"))
with open("sfz.html", "a") as file:
    file.write("--></html>")
os.makedirs("folder")
with open("folder/index.html", "w") as file:
    file.write(html.format(scrap.format("folder"), "Folder", "Admiral"))
with open("folder/p.png", "wb") as file:
    file.write(b"\x89PNG")
with open("plain.html", "w") as file:
    file.write(html.format("", "Plain", "Kaisermantel"))
PYTHON
}

snapshot_of() { query "map(select(.url == \"$1\")) | .[-1].id" list snapshots --limit 0; }
directory_of() { query '.[0].directory' list snapshots "$(snapshot_of "$1")"; }
version_at() { query "map(select(.url == \"$page\" and .visited_at == \"$1\")) | .[0].directory" list snapshots --limit 0; }
has_file() { in_capsule test -s "$(directory_of "$1")/$2" || fail "$1 has no $2: $(in_capsule find "$(directory_of "$1")")"; }
finds() { [[ $(archivist search --json "$1" 2>/dev/null | gojq '.hits | length') == "${2-1}" ]]; }

imports_each_format() {
    local before
    before=$(in_capsule sh -c "cd $saved && find . -printf '%p %T@ %s %m\n' | sort | sha256sum")
    assert_status 0 in_capsule sh -c "cd $saved && archivist import --dry-run single.html page.mhtml *.webarchive page.htz page.maff folder"
    assert_contains "$output" "'single.html': page of SingleFile, 'Der Bläuling – 日本', $page, of 2026-11-27T00:04:28.000Z" "SingleFile"
    assert_contains "$output" "'page.mhtml': MHTML page, 'Der Bläuling – 日本', $page, of 2026-11-27T00:05:04.000Z" MHTML
    assert_contains "$output" "'page.maff': MAFF page, 'MAFF', http://maff.test/?a&b, of 2021-02-03T04:05:06.000Z" MAFF
    assert_eq 0 "$(query length list snapshots)" "snapshots after a dry run"
    assert_status 0 in_capsule sh -c "cd $saved && archivist import --wait single.html page.mhtml *.webarchive page.htz page.maff sfz.html folder"
    assert_contains "$output" "8 saved pages: 8 taken, 0 known" report
    # Its picture is not there.
    assert_status 3 in_capsule sh -c "cd $saved && archivist import --wait --url http://plain.test --date 2020-01-02 plain.html"
    assert_contains "$output" "'plain.html': left out: p.png" "what is missing"
    assert_eq 9 "$(query 'map(select(.status == "sealed")) | length' list snapshots --limit 0)" "sealed snapshots"
    assert_eq 0 "$(query 'map(.results.failed // 0) | add' list snapshots --limit 0)" "failed results"
    assert_eq "$before" "$(in_capsule sh -c "cd $saved && find . -printf '%p %T@ %s %m\n' | sort | sha256sum")" "the files"
    assert_eq .lock "$(in_capsule ls -A $archive/.importing)" "what is staged"
    keep page
}

keeps_files_times_and_texts() {
    local url file word
    needs imports_each_format
    while read -r url file word; do
        has_file "$url" "$file"
        has_file "$url" text/text.txt
        wait_for 20 finds "$word"
    done <<FILES
http://binary.test/ saved/binary.webarchive binaryfalter
http://binary.test/ saved/document.html binaryfalter
http://xml.test/ saved/xml.webarchive xmlfalter
http://htz.test/ saved/page.htz Schwalbenschwanz
http://maff.test/?a&b saved/page.maff Trauermantel
http://sfz.test/ saved/sfz.html Ordensband
http://sfz.test/ saved/document.html Ordensband
http://folder.test/ saved/folder/p.png Admiral
http://plain.test/ saved/plain.html Kaisermantel
FILES
    # Both versions of the page, at the times at which they were saved.
    assert_eq "2026-11-27T00:05:04.000Z 2026-11-27T00:04:28.000Z" \
        "$(archivist versions --json $page | gojq --raw-output 'map(.visited_at) | sort | reverse | join(" ")')" "times of versions"
    wait_for 20 finds Zipfelmütze
    file=$(version_at 2026-11-27T00:05:04.000Z)
    in_capsule grep -q "Zipfelmütze" "$file/saved/document.html" || fail "no document of MHTML"
    assert_eq "$(sha256sum <"$ROOT/tests/capsule/saved/page.mhtml")" "$(in_capsule sha256sum "$file/saved/page.mhtml" | sed 's/ .*/  -/')" "the file of Chromium"
    file=$(version_at 2026-11-27T00:04:28.000Z)
    assert_eq "$(sha256sum <"$ROOT/tests/capsule/saved/single.html")" "$(in_capsule sha256sum "$file/singlefile/singlefile.html" | sed 's/ .*/  -/')" "the file of SingleFile"
    in_capsule grep -q 'href="./singlefile/singlefile.html"' "$file/index.html" || fail "the page does not lead to the file"
    assert_eq "2021-02-03T04:05:06.789Z" "$(query '.[0].visited_at' list snapshots "$(snapshot_of http://folder.test/)")" "time of the folder"
    assert_contains "$(directory_of http://folder.test/)" /20210203/folder.test/ "directory of the folder"
    in_capsule grep -q "2021-02-03" $archive/20210203/index.html || fail "the list of the day has another day"
    assert_status 0 archivist fsck
}

# A recording of another program: its pages are found by their words and have a picture, and the export of one of
# them, imported into an empty archive, too.
finds_pages_of_recordings() {
    in_capsule python3 - <<'PYTHON'
import gzip
def record(kind, url, type, block, more=""):
    head = f"WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Record-ID: <urn:uuid:{abs(hash((url, kind)))}>\r\nWARC-Target-URI: {url}\r\nWARC-Date: 2024-03-04T05:06:07Z\r\n{more}Content-Type: {type}\r\nContent-Length: {len(block)}\r\n\r\n"
    return gzip.compress(head.encode() + block + b"\r\n\r\n")
page = lambda word: f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n<title>Nachts</title><p>{word}".encode()
with open("/srv/saved/crawl.warc.gz", "wb") as file:
    file.write(record("response", "<http://crawl.test/>", "application/http; msgtype=response", page("Totenkopfschwärmer")))
    file.write(record("response", "<http://crawl.test/b>", "application/http; msgtype=response", page("Weinschwärmer")))
    file.write(record("resource", "urn:view:http://crawl.test/", "image/png", b"\x89PNG picture"))
PYTHON
    assert_status 0 archivist import --dry-run $saved/crawl.warc.gz
    assert_contains "$output" "a recording of 2 pages" "the dry run"
    assert_contains "$output" "'Nachts', http://crawl.test/, of 2024-03-04T05:06:07Z, with text and picture" "the dry run"
    assert_status 0 archivist import --wait $saved/crawl.warc.gz
    assert_eq 2 "$(query 'map(select((.url | startswith("http://crawl.test/")) and .status == "sealed")) | length' list snapshots --limit 0)" "sealed pages"
    wait_for 20 finds Totenkopfschwärmer
    wait_for 20 finds Weinschwärmer
    has_file http://crawl.test/ screenshot/screenshot.png
    in_capsule grep -q 'screenshot/screenshot.png' "$(directory_of http://crawl.test/)/index.html" || fail "the page has no picture"
    assert_status 0 archivist fsck
    assert_status 0 archivist import $saved/crawl.warc.gz
    assert_contains "$output" "nothing new" "the same recording"
    assert_status 0 archivist export "$(snapshot_of http://crawl.test/b)" -o $saved/own.wacz
    archivist delete --yes "$(snapshot_of http://crawl.test/b)" >/dev/null
    wait_for 20 finds Weinschwärmer 0
    assert_status 0 archivist import --wait $saved/own.wacz
    wait_for 20 finds Weinschwärmer
}

adds_nothing_twice() {
    needs imports_each_format
    in_capsule cp $saved/single.html $saved/renamed.htm
    assert_status 0 in_capsule sh -c "cd $saved && archivist import renamed.htm page.mhtml page.htz page.maff folder"
    assert_contains "$output" "5 saved pages: 0 taken, 5 known" report
    # A retry runs no hook of the other program.
    archivist retry "$(snapshot_of http://htz.test/)" >/dev/null || true
    assert_eq 9 "$(query length list snapshots --limit 0)" snapshots
}

completes_what_bookmarks_know() {
    needs imports_each_format
    in_capsule sh -c "printf 'url,title,tags\nhttp://plain.test/,Other,moth\nhttp://htz.test/,,\n' >$saved/others.csv"
    assert_status 0 archivist import $saved/others.csv
    assert_contains "$output" "0 taken, 2 known, 0 refused; 1 known page got tags, a title or a date" "the bookmarks"
    wait_for 20 finds '#moth'
    assert_eq moth "$(query '.[0].tags | map(select(. == "moth"))' list snapshots "$(snapshot_of http://plain.test/)")" "tags of the page"
}

# Entries of lists are recorded, found, and archived later; those of wallabag have their text.
keeps_entries() {
    local kept
    in_capsule sh -c "cd $saved && for n in \$(seq 200); do echo http://kept\$n.test/,Segelfalter \$n,fly; done | sed '1iurl,title,tags' >list.csv && cat >wallabag.json" <<'JSON'
[{"is_archived": 0, "url": "http://wallabag.test/", "title": "Kept", "tags": ["fly"], "created_at": "2020-01-02T03:04:05+00:00",
  "content": "<p>Perlmutterfalter</p>"}]
JSON
    kept=$(date +%s%N)
    assert_status 0 archivist import --keep-only --wait $saved/list.csv $saved/wallabag.json
    echo "figure: 200 entries kept in $((($(date +%s%N) - kept) / 1000000)) ms"
    assert_contains "$output" "200 taken, 0 known, 0 refused" "the list"
    assert_eq 200 "$(query 'map(select((.url | startswith("http://kept")) and .status == "sealed" and .results.noresults == 1)) | length' list snapshots --limit 0)" entries
    wait_for 60 finds 'Segelfalter 117'
    wait_for 60 finds Perlmutterfalter
    assert_eq "2020-01-02T03:04:05.000Z" "$(query '.[0].visited_at' list snapshots "$(snapshot_of http://wallabag.test/)")" "time of wallabag"
    assert_contains "$(archivist list snapshots --tag fly --limit 0)" "Segelfalter 200" "pages with a tag"
    assert_status 0 archivist import --keep-only $saved/list.csv $saved/wallabag.json
    assert_contains "$output" "nothing new" "the same lists"
    assert_eq 201 "$(query 'map(select(.tags | index("fly"))) | length' list snapshots --limit 0)" "entries after the same lists"
    # The page is visited later, in the same snapshot.
    kept=$(snapshot_of http://kept7.test/)
    assert_status 0 archivist retry --hook headers "$kept"
    wait_for 60 has_result "$kept" headers
}

# Units write the directories of many entries, while the orchestrator and some of these units are killed.
keeps_many_entries() {
    local began kills=0 count=1000
    [[ ${EXTENT-short} != full ]] || count=10000
    in_capsule sh -c "cd $saved && for n in \$(seq $count); do echo http://h\$((n % 300)).test/\$n,Nachtfalter \$n,many; done | sed '1iurl,title,tags' >many.csv"
    began=$(date +%s%N)
    assert_status 0 archivist import --keep-only $saved/many.csv
    while [[ $kills -lt 3 ]]; do
        if in_capsule systemctl kill --signal=KILL 'archivist-entries-*' 2>/dev/null; then kills=$((kills + 1)); fi
        [[ $kills != 2 ]] || in_capsule systemctl kill --signal=KILL archivist-orchestrator.service
    done
    wait_for 180 is_everything_sealed
    echo "figure: $count entries kept in $((($(date +%s%N) - began) / 1000000)) ms, with $kills kills"
    assert_eq $count "$(archivist list snapshots --tag many --json --limit 0 | gojq 'map(select(.status == "sealed" and .results.noresults == 1 and .attempts == 1) | .url) | unique | length')" entries
    assert_eq $count "$(in_capsule sh -c "grep -ls '\"url\":\"http://h[0-9]*\.test' $archive/2*/h*.test/s*/.identity.json" | wc -l)" "directories"
    assert_eq "" "$(in_capsule sh -c "for page in $archive/2*/h[0-9]*.test/s*; do [ \$(grep -c noresults \$page/index.jsonl) = 1 ] || echo \$page; done")" "entries with other than one result"
    wait_for 120 finds "Nachtfalter $count"
    assert_eq 1 "$(archivist versions --json http://h1.test/1 | gojq length)" "versions of an entry"
    assert_status 0 archivist import --keep-only $saved/many.csv
    assert_contains "$output" "nothing new" "the same list"
    assert_status 0 archivist fsck
    archivist delete --yes --tag many >/dev/null
    wait_for 180 files_are_removed
}
is_everything_sealed() { [[ $(query .snapshots.queued status) == null ]]; }

# What export writes is the same after its import into an empty archive.
exports_and_imports_the_same() {
    needs keeps_entries
    local before
    before=$(listed)
    assert_status 0 archivist export --netscape --tag fly -o $saved/first.html
    forget_pages
    restart
    assert_status 0 archivist import --keep-only --wait $saved/first.html
    assert_contains "$output" "201 taken, 0 known, 0 refused" "the export"
    assert_status 0 archivist export --netscape --tag fly -o $saved/second.html
    assert_eq 201 "$(in_capsule grep -c 'ADD_DATE="[0-9]*" TAGS="fly">Segelfalter\|Kept' $saved/second.html)" "bookmarks with tags and titles"
    # The order of two crawls is not that of one.
    assert_eq "$(in_capsule sort $saved/first.html)" "$(in_capsule sort $saved/second.html)" "bookmarks with tags, titles and dates"
    assert_eq "$before" "$(listed)" "snapshots"
    in_capsule grep -q 'wallabag.test/" ADD_DATE="1577934245"' $saved/second.html || fail "the date of wallabag is lost"
}

listed() { query 'map({url, title, tags}) | sort_by(.url)' list snapshots --tag fly --limit 0; }

has_result() { [[ $(query "map(select(.plugin == \"$2\" and (.status == \"failed\" or .status == \"succeeded\"))) | length" list results "$1") == 1 ]]; }

cases imports_each_format keeps_files_times_and_texts completes_what_bookmarks_know adds_nothing_twice keeps_entries \
    keeps_many_entries exports_and_imports_the_same finds_pages_of_recordings
