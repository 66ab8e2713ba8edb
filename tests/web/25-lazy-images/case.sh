# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port path urls=()
    for path in lazy-far lazy-mid lazy-top lazy-hidden observer carousel box more; do urls+=("$base/$path"); done
    crawl_lazy=$(add --plugins pdf,screenshot,dom "${urls[@]}")
}

judge() {
    local path
    wait_for 120 is_over "$crawl_lazy"
    for path in lazy-far lazy-mid lazy-top observer carousel box; do
        assert_eq succeeded "$(result "$crawl_lazy" "/$path" screenshot status)" "screenshot of /$path"
        in_capsule grep -aq "/Subtype /Image" "$(saved "$crawl_lazy" "/$path")/pdf/output.pdf" || fail "/$path: the picture is not in the PDF"
    done
    in_capsule grep -q "PART 4" "$(saved "$crawl_lazy" /more)/dom/output.html" || fail "/more: stops at the first screen"
}
