# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_stream=$(add --plugins dom,title,screenshot "$base/" "$base/longpoll" "$base/endless-fetch" "$base/beacon" \
        "$base/late-image" "$base/stream-then-data" "$base/poll" "$base/socket" "$base/plain")
}

judge() {
    local path
    wait_for 120 is_over "$crawl_stream"
    for path in / /longpoll /endless-fetch /beacon /late-image /stream-then-data /poll /socket /plain; do
        in_capsule grep -q "CONTENT READY" "$(saved "$crawl_stream" ":$port$path")/dom/output.html" || fail "$path: not its content"
        assert_eq ready "$(in_capsule cat "$(saved "$crawl_stream" ":$port$path")/title/title.txt")" "title of $path"
    done
    in_capsule grep -q "DATA ARRIVED" "$(saved "$crawl_stream" /stream-then-data)/dom/output.html" || fail "data next to a stream is missing"
    assert_contains "$(in_capsule cat "$(saved "$crawl_stream" ":$port/")/chromium/navigation.json")" "(event stream)" "note of the stream"
}
