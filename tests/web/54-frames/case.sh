# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    crawl_frames=$(add --plugins dom,outlinks,chromium "http://127.0.0.1:$port/")
}

judge() {
    local dir text
    wait_for 120 is_over "$crawl_frames"
    dir=$(saved "$crawl_frames" /)
    for text in "OF THE OTHER SITE" "OF THE SAME SITE" "IN SRCDOC" "TWO DEEP"; do
        in_capsule grep -q "p&gt;$text\|p&amp;gt;$text" "$dir/dom/output.html" || fail "$text is not in the DOM"
    done
    for text in localhost:"$port"/dir/by-other 127.0.0.1:"$port"/dir/by-inner 127.0.0.1:"$port"/else/by-same; do
        in_capsule grep -q "\"http://$text\"" "$dir/outlinks/urls.jsonl" || fail "$text is not among the links"
    done
}
