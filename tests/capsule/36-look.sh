#!/bin/bash
# The archive in a browser without a server: a page for every snapshot, lists, valid links.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

archive=/var/lib/archivist/archive
away=/srv/archivist-away

clean() {
    stop_site
    in_capsule rm -rf $away /run/archivist-test
    forget_configuration
}

prepare() {
    start_site
    capsule cp "$(dirname "$0")/archive/links.py" "$CAPSULE:/opt/links.py"
    # A hook that attacks the HTML pages: file names with a meaning in a URL, and links at the paths of the pages.
    plugin testnames <<'SH'
#!/bin/sh
for name in 'javascript:alert(1)' 'a#b?c=%2F.txt' 'quo"te'"'"'.txt' '<img src=x onerror=alert(1)>.txt' 'new
line.txt' 'back\slash' '&lt;.html'; do echo "$name" >"$name"; done
mkdir 'https:' && echo x >'https:/evil.test'
touch "$SNAP_DIR/victim"
ln -s "$SNAP_DIR/victim" "$SNAP_DIR/index.html"
ln -s "$SNAP_DIR/victim" "$SNAP_DIR/.index.html.part"
ln -s "$SNAP_DIR/victim" "$CRAWL_DIR/index.html" || mkdir "$CRAWL_DIR/page-1.html"
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "<script>alert(1)</script>"}'
SH
    plugin testfails <<'SH'
#!/bin/sh
echo '{"type": "ArchiveResult", "status": "failed", "error": "the <b>reason</b> why"}'
exit 1
SH
    configure </dev/null
}

# The row of the one snapshot of crawl $1.
directory_of() { query '.[0].directory' list snapshots "$1"; }

# see PAGE PART…: asserts that the page contains these parts.
see() {
    local page=$1 text part
    shift
    text=$(in_capsule cat "$page")
    for part in "$@"; do assert_contains "$text" "$part" "$page"; done
}

# refute PAGE PART
refute() {
    ! in_capsule grep -qF -e "$2" "$1" || fail "$1 has '$2'"
}

makes_a_page() {
    assert_status 3 archivist add --wait --tag '<i>tag</i>' --plugins testnames,testfails,title,screenshot "${site}hostile"
    crawl=$(sed -n 's/^queued 1 URL as \(c[0-9]*\)$/\1/p' <<<"$output")
    directory=$(directory_of "$crawl")
    keep crawl directory
    see "$directory/index.html" '<bdi>$(touch /tmp/pwned) &quot;&lt;b&gt;</bdi>' 'the &lt;b&gt;reason&lt;/b&gt; why' \
        '&lt;script&gt;alert(1)&lt;/script&gt;' '<img src="./screenshot/thumbnail.webp"' 'href="./screenshot/screenshot.png"' 'href="./testnames/javascript%3Aalert%281%29"' \
        "Content-Security-Policy" "$site""hostile"
    refute "$directory/index.html" '<script'
    refute "$directory/index.html" 'href="javascript'
    refute "$directory/index.html" '<b>'
    assert_eq 0 "$(in_capsule stat -c %s "$directory/victim")" "size of the file that a hook's link led to"
    assert_eq "regular file archivist" "$(in_capsule stat -c '%F %U' "$directory/index.html")" "the page in place of a hook's link"
}

lists_it() {
    needs makes_a_page
    local below=${directory#"$archive/"}
    see $archive/index.html "./$below/index.html" "./$below/screenshot/thumbnail.webp" '1 failed' '$(touch /tmp/pwned) &quot;&lt;b&gt;'
    see "$archive/${below%%/*}/index.html" "../$below/index.html"
    see "$(query '.[0].directory' list crawls "$crawl")/index.html" "../../../$below/index.html"
    assert_eq "2700 archivist" "$(in_capsule stat -c '%a %U' $archive/.index)" "the directory of the lists"
}

says_what_is_skipped() {
    in_capsule sh -c "mkdir -p $plugins/testskipped && cd $plugins/testskipped && printf '#!/bin/sh\n' >on_Snapshot__20_testskipped.sh &&
        chmod 755 on_Snapshot__20_testskipped.sh && cat >config.json" <<'JSON'
{"type": "object", "properties": {}, "required_binaries": [{"name": "no-such-program", "binproviders": "env"}]}
JSON
    restart
    local id
    id=$(add --plugins testskipped,testfails "${site}page/1")
    wait_for 30 is_over "$id"
    see "$(directory_of "$id")/index.html" testskipped 'class="pill skipped"' no-such-program
}

keeps_one_entry_after_a_retry() {
    needs makes_a_page
    archivist retry "$crawl" --hook testfails
    wait_for 30 is_over "$crawl"
    see "$directory/index.html" "2 attempts" screenshot.png
    assert_eq 1 "$(in_capsule cat "$archive/$(basename "$(dirname "$(dirname "$directory")")")/index.html" |
        grep -o "href=\"../${directory#"$archive/"}/index.html\"" | wc -l)" "entries of the snapshot in the list of its day"
}

# In a copy of the archive, every link of every generated page leads to a file; in a copy of one snapshot, all but those upwards.
links_hold_elsewhere() {
    needs makes_a_page
    in_capsule mkdir -p $away
    in_capsule cp -r $archive "$away/the archive, 100% #moved?"
    in_capsule mv $archive $archive.aside
    local failed=no
    in_capsule python3 /opt/links.py "$away/the archive, 100% #moved?" || failed=yes
    in_capsule mv $archive.aside $archive
    [[ $failed == no ]] || fail "links of the archive after it was moved"
    in_capsule cp -r "$directory" $away/alone
    in_capsule python3 /opt/links.py --alone $away/alone || fail "links of a snapshot that was taken out"
}

# A browser shows the screenshot under file:// and runs no script, which would change the title.
a_browser_shows_it() {
    needs makes_a_page
    local dump
    dump=$(in_capsule timeout 60 chromium --headless=new --no-sandbox --disable-gpu --user-data-dir=/tmp/test-browser --enable-logging=stderr \
        --virtual-time-budget=5000 --dump-dom "file://$directory/index.html" 2>&1) || fail "chromium: $dump"
    assert_contains "$dump" "&lt;b&gt;" "what the browser has"
    [[ $dump != *"Content Security Policy"* ]] || fail "the browser refused a part of our own page: $dump"
    in_capsule rm -rf /tmp/test-browser
}

opens() {
    needs makes_a_page
    assert_eq "$directory/index.html" "$(archivist open "$(query '.[0].id' list snapshots "$crawl")")" "archivist open ID without a desktop"
    assert_eq $archive/index.html "$(in_capsule env DISPLAY=:0 archivist open --print)" "archivist open --print"
    assert_status 1 archivist open s999999
    assert_contains "$output" "there is no s999999" "an unknown id"
    assert_status 2 archivist open nonsense
    # With a desktop it is replaced by xdg-open.
    in_capsule sh -c 'mkdir -p /run/archivist-test && printf "#!/bin/sh\necho \"opens \$*\"\n" >/run/archivist-test/xdg-open && chmod 755 /run/archivist-test/xdg-open'
    assert_eq "opens $archive/index.html" "$(in_capsule env DISPLAY=:0 PATH=/run/archivist-test:/usr/bin:/bin archivist open)" "archivist open with a desktop"
    # A member of the group may call the orchestrator, but not read the archive.
    assert_status 1 in_capsule setpriv --reuid=nobody --regid=nogroup --groups="$(in_capsule getent group archivist | cut -d: -f3)" archivist open --print "$crawl"
    assert_contains "$output" "sudo" "who may not read the archive"
}

# The worker of the crawl rewrites its lists without warnings.
the_worker_of_the_crawl_has_no_complaint() {
    needs makes_a_page
    assert_eq "" "$(journal --output=cat --priority=warning --unit="archivist-crawl-${crawl#c}.service")" \
        "warnings of the worker of $crawl"
    assert_nothing_is_left
}

cases makes_a_page lists_it says_what_is_skipped keeps_one_entry_after_a_retry links_hold_elsewhere a_browser_shows_it \
    opens the_worker_of_the_crawl_has_no_complaint
