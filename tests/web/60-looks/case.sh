# shellcheck shell=bash disable=SC2154 # $port and $web are those of tests/capsule/web.sh
looks=(late-font script-font scheme hero sticky appear visibility drawing webgl styled formula picture form background)

queue() { crawl_looks=$(add --plugins dom,pdf,screenshot "${looks[@]/#/http://127.0.0.1:$port/}"); }

judge() {
    local path plugin
    wait_for 150 is_over "$crawl_looks"
    for path in "${looks[@]}"; do
        for plugin in dom pdf screenshot; do
            assert_eq succeeded "$(result "$crawl_looks" "/$path" "$plugin" status)" "$plugin of /$path"
        done
    done
    in_capsule grep -q data-archivist-rules "$(saved "$crawl_looks" /styled)/dom/output.html" || fail "/styled: no rules of its scripts"
    in_capsule grep -q 'value="TYPED"' "$(saved "$crawl_looks" /form)/dom/output.html" || fail "/form: what was typed is missing"
}
