# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_files=$(add --plugins wacz,dom,standalone,wget "http://127.0.0.1:$port/" "http://127.0.0.1:$port/static")
}

judge() {
    wait_for 60 is_over "$crawl_files"
    in_capsule rm -rf /root/html-export
    assert_status 0 archivist export "$crawl_files" --html /root/html-export
    assert_contains "$output" ": 2 pages, 4 files, 0 addresses not in the recordings" "the export"
    in_capsule sh -c 'cd /root/html-export && cat index.html pages/*.html' | grep -q '<a href="../pages/[^"]*-static-s[0-9]*.html#x">other page' ||
        fail "pages do not lead to each other"
    ! in_capsule grep -riE "<script|onload|javascript:" /root/html-export || fail "something of the copy acts"
    local directory
    for directory in $(query 'map(.directory) | .[]' list snapshots "$crawl_files"); do
        in_capsule grep -q 'class="views"><a href="./standalone/index.html"' "$directory/index.html" ||
            fail "the page about the snapshot offers another file first"
        in_capsule grep -q 'src="files/red-[^"]*.png"' "$directory/standalone/index.html" || fail "no picture from disk"
        ! in_capsule grep -riE "<script|onload|javascript:" "$directory/standalone" || fail "something of the page acts"
    done
}
