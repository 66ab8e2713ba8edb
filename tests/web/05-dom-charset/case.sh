# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
queue() {
    local base=http://127.0.0.1:$port
    crawl_letters=$(add --plugins dom,title,outlinks "$base/shift_jis" "$base/comment/gb18030" "$base/header/windows-1251")
}

judge() {
    local path file
    wait_for 60 is_over "$crawl_letters"
    for path in /shift_jis /comment/gb18030 /header/windows-1251; do
        file=$(saved "$crawl_letters" "$path")
        in_capsule grep -q '<head><[^>]*meta charset="utf-8"\|<head><!--' "$file/dom/output.html" || fail "$path: the saved file declares no UTF-8"
        in_capsule grep -Eq 'こんにちは、世界|你好，世界|Здравствуй, мир' "$file/dom/output.html" || fail "$path: its words are not there"
    done
    assert_eq "こんにちは、世界" "$(in_capsule cat "$(saved "$crawl_letters" /shift_jis)/title/title.txt")" "title"
    in_capsule grep -qi '/search?q=%82%B1%82%F1' "$(saved "$crawl_letters" /shift_jis)/outlinks/urls.jsonl" || fail "the link is not in the encoding of its page"
}
