#!/bin/bash
# Documentation as packages of Debian have it: each PDF, picture and document that was saved is opened, and has words and ink. With
# EXTENT=full, 300 pages of three packages, search pages among them.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"
source "$(dirname "$0")/registries.sh"

PACKAGES=(python3-doc postgresql-doc rust-doc)
documents=/usr/share/doc
blank=$ROOT/tests/capsule/documents/blank.py
browser=/tmp/test-browser

clean() {
    in_capsule systemctl stop test-documents.service 2>/dev/null || true
    in_capsule rm -rf $browser
    forget_configuration
}

prepare() {
    /usr/bin/python3 -c 'import PIL.Image' || bail "Pillow is not installed: apt install python3-pil"
    command -v pdftoppm >/dev/null || bail "pdftoppm is not installed: apt install poppler-utils"
    configure <<'END'
[Orchestrator]
HostDelaySec=0
END
    in_capsule systemd-run --quiet --collect --unit=test-documents --property=Type=exec \
        python3 -u -m http.server 0 --bind 127.0.0.1 --directory $documents
    wait_for 20 served >/dev/null
    base=$(served)
}

# URL of the server, without a slash at its end.
served() {
    in_capsule journalctl --quiet --no-pager --output=cat _SYSTEMD_INVOCATION_ID="$(unit_property test-documents InvocationID)" |
        sed -n 's,^Serving HTTP on .*(\(http://[^)]*\)/).*,\1,p' | grep .
}

# pages_in COUNT DIRECTORY…: URLs of HTML pages, evenly spread over all that are there, without redirects, which are small, and
# without the instructions of processors, which are nine of ten pages of Rust.
pages_in() {
    local count=$1
    shift
    in_capsule find "$@" -name '*.html' -type f -size +1k -not -path '*/arch/*' | grep -v '[^A-Za-z0-9/._+-]' | LC_ALL=C sort |
        awk -v count="$count" '{ line[NR] = $0 }
            END { step = NR > count ? NR / count : 1; for (n = 0; n < count && n < NR; n++) print line[int(n * step) + 1] }' |
        sed "s,^$documents,$base,"
}

# archive SECONDS: archives the pages of $work/urls and keeps the answers for `look`, which judges the results.
archive() {
    local crawl
    crawl=$(archivist add --json - <"$work/urls" | evaluate '.crawl')
    wait_for "$1" is_over "$crawl"
    archivist list snapshots "$crawl" --limit 0 --json >"$work/snapshots"
    archivist list results "$crawl" --limit 0 --json >"$work/results"
    assert_eq "$(wc -l <"$work/urls")" "$(evaluate 'length' <"$work/snapshots")" "pages"
}

# look ROOT: opens what was saved of these pages, below this root directory.
look() { "$blank" "$1" "$work/snapshots" "$work/results"; }

of_capsule() { capsule path "$CAPSULE"; }

saves_words_and_ink() {
    pages_in 6 $documents/ >"$work/urls"
    archive 240
    look "$(of_capsule)" || fail "not everything that succeeded has words and ink"
}

# A copy of the same files, and then one with files of an empty page among them.
finds_blank_files() {
    needs saves_words_and_ink
    local root=$work/planted directories name id number=0 output status=0
    mapfile -t directories < <(gojq --raw-output '.[].directory' "$work/snapshots")
    for name in "${directories[@]}"; do
        mkdir -p "$root$name"
        cp -R "$(of_capsule)$name/." "$root$name"
    done
    look "$root" || fail "the copy differs from what was saved"
    in_capsule sh -c "mkdir -p $browser && cd $browser && for file in print-to-pdf=blank.pdf screenshot=blank.png; do
        timeout 60 chromium --headless=new --no-sandbox --disable-gpu --no-pdf-header-footer --user-data-dir=profile --\$file about:blank \
            >log 2>&1 || { cat log; exit 1; }; done"
    capsule cp "$CAPSULE:$browser/blank.pdf" "$root${directories[0]}/pdf/output.pdf"
    capsule cp "$CAPSULE:$browser/blank.png" "$root${directories[1]}/screenshot/screenshot.png"
    truncate --size=1000 "$root${directories[2]}/screenshot/thumbnail.webp"
    mv "$root${directories[4]}/pdf/output.pdf" "$root${directories[3]}/pdf/output.pdf"
    echo '<title>a</title><script>b</script>' >"$root${directories[5]}/dom/output.html"
    output=$(look "$root") || status=$?
    assert_eq 1 "$status" "status"
    for name in 'pdf: output.pdf: no words' 'screenshot: screenshot.png: no ink' 'screenshot: thumbnail.webp: could not create decoder object' \
        'pdf: output.pdf: [0-9]* of [0-9]* words' 'pdf: output.pdf: No such file' 'dom: output.html: no words'; do
        id=$(gojq --raw-output ".[$number].id" "$work/snapshots")
        grep -q "^blank: $id .*: $name" <<<"$output" || fail "'$name' of $id is not in '$output'"
        number=$((number + 1))
    done
    assert_contains "$output" ", 0 time limits, 6 blank; " "counts"
}

finds_time_limits() {
    needs saves_words_and_ink
    local output status=0
    cp "$work/results" "$work/saved-results"
    gojq 'map(if .plugin == "pdf" then .status = "failed" | .error = "time limit reached" else . end)' "$work/saved-results" >"$work/results"
    output=$(look "$(of_capsule)") || status=$?
    assert_eq 1 "$status" "status"
    assert_contains "$output" ", 6 time limits, 0 blank; 0 PDFs " "counts"
    assert_contains "$output" "6 times pdf failed: time limit reached" "results"
}

three_hundred() {
    [[ ${EXTENT-} == full ]] || skip "fetches documentation and takes ten minutes: only in the full run"
    local began word
    trust_certificates
    may_skip in_capsule apt-get -q update
    may_skip apt_in_capsule install --no-install-recommends "${PACKAGES[@]}"
    {
        pages_in 94 $documents/python3/html/
        pages_in 47 $documents/rust-doc/html/std
        pages_in 47 $documents/rust-doc/html/{book,nomicon,reference,rust-by-example}
        pages_in 100 "$(in_capsule sh -c "ls -d $documents/postgresql-doc-*")"
        for word in list socket asyncio exit%20status walrus nosuchwordanywhere; do
            echo "$base/python3/html/search.html?q=$word"
        done
        for word in vec hashmap io%3A%3ARead str%20-%3E%20usize slice nosuchwordanywhere; do
            echo "$base/rust-doc/html/std/index.html?search=$word"
        done
    } >"$work/urls"
    assert_eq 300 "$(sort -u "$work/urls" | wc -l)" "pages"
    began=$EPOCHSECONDS
    archive 3600
    figure "300 pages of ${PACKAGES[*]} in $((EPOCHSECONDS - began)) s"
    look "$(of_capsule)" || fail "not everything that succeeded has words and ink"
    have_results
}

# The pages of searches were saved with what was found, not before the script of the page had searched.
have_results() {
    local url directory without=()
    while read -r url directory; do
        in_capsule grep -qE 'Search finished|did not match any|id="search-tabs"' "$directory/dom/output.html" </dev/null || without+=("$url")
    done < <(gojq --raw-output '.[] | select(.url | test("[?](q|search)=")) | "\(.url) \(.directory)"' "$work/snapshots")
    assert_eq "" "${without[*]}" "search pages without results"
}

cases saves_words_and_ink finds_blank_files finds_time_limits three_hundred
