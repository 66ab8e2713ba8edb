# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
policies=(no-scripts sandbox trusted-types isolated own-policy integrity hotlink members no-script-refresh a/b/base modules)

queue() { crawl_policies=$(add --plugins dom,screenshot,wget "${policies[@]/#/http://127.0.0.1:$port/}" "http://127.0.0.1:$port/login"); }

judge() {
    local path plugin copy
    wait_for 150 is_over "$crawl_policies"
    for path in "${policies[@]}"; do
        for plugin in dom screenshot wget; do
            assert_eq succeeded "$(result "$crawl_policies" "/$path" "$plugin" status)" "$plugin of /$path"
        done
        copy=$(saved "$crawl_policies" "/$path")
        in_capsule grep -q SHOWN "$copy/dom/output.html" || fail "/$path: not its content"
        in_capsule grep -q SHOWN "$copy/wget/$(result "$crawl_policies" "/$path" wget output)" || fail "/$path: not its content in the copy"
    done
    in_capsule grep -q "LOG IN FIRST" "$(saved "$crawl_policies" /login)/dom/output.html" || fail "/login: not its page"
    in_capsule grep -q "LATE CHUNK" "$(saved "$crawl_policies" /modules)/dom/output.html" || fail "/modules: not its content"
}
