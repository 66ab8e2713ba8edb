# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
# One page of each way; tests/hooks judges all of them.
queue() {
    local base=http://127.0.0.1:$port path urls=()
    for path in fixed accept-only shadow frame onetrust rules/onetrust keep/app; do
        urls+=("$base/$path")
    done
    # The frame is of another site.
    crawl_walls=$(add --plugins pdf,screenshot,dom,text --set CHROMIUM_CONSENT_HOSTS=localhost "${urls[@]}")
}

# note_of PATH: what was done to the page.
note_of() {
    in_capsule python3 -c 'import json, sys; print(json.load(open(sys.argv[1])).get("note", ""))' \
        "$(saved "$crawl_walls" ":$port$1")/chromium/navigation.json"
}

judge() {
    local path note pdf
    wait_for 120 is_over "$crawl_walls"
    # The last needs the rules of the package.
    for path in fixed shadow frame onetrust rules/onetrust; do
        note=$(note_of "/$path")
        [[ $note == *"closed a consent wall"* ]] || fail "/$path: the note is '$note'"
        in_capsule grep -q 'data-choice="rejected"' "$(saved "$crawl_walls" ":$port/$path")/dom/output.html" || fail "/$path: not rejected"
    done
    note=$(note_of /accept-only)
    [[ $note == *"hid "* ]] || fail "/accept-only: the note is '$note'"
    for path in fixed accept-only shadow frame onetrust; do
        # A wall in a page that cannot scroll leaves one sheet of paper.
        pdf=$(saved "$crawl_walls" ":$port/$path")/pdf/output.pdf
        (($(in_capsule grep -ac "/Type */Page$" "$pdf") > 1)) || fail "/$path: the PDF has one page"
        # What a reader does not see any more is not found by a search.
        in_capsule grep -q "THE END" "$(saved "$crawl_walls" ":$port/$path")/text/text.txt" || fail "/$path: the text has no end"
        ! in_capsule grep -q WALLWORD "$(saved "$crawl_walls" ":$port/$path")/text/text.txt" || fail "/$path: the wall is in the text"
    done
    assert_eq "" "$(note_of /keep/app)" "note of /keep/app"
}
