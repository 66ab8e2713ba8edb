#!/bin/bash
# archivist search: pages are found soon after they are sealed, and not after they are deleted; an index that is lost, damaged or of
# another version, and an indexer that is killed.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

index=/var/lib/archivist/index/search
unit=archivist-index-pages.service

clean() {
    stop_site
    forget_configuration
}

prepare() {
    start_site
    forget_pages
    printf '[Orchestrator]\nRetrySec=1s\nHostDelaySec=0\n' | configure
}

# found WORD…: the ids of what is found, in order.
found() { archivist search --json "$@" | gojq --raw-output '.hits | map(.id) | join(" ")'; }
finds() { [[ $(found "${@:2}" 2>/dev/null) == "$1" ]]; }

archives() {
    local crawl start
    start=$(in_capsule date +%s%N)
    crawl=$(archivist add --json --wait --plugins wget,text "${site}redirected" | gojq --raw-output --slurp '.[0].crawl')
    page=$(query '.[0].id' list snapshots "$crawl")
    wait_for 20 finds "$page" "end of the chain"
    echo "figure: found $((($(in_capsule date +%s%N) - start) / 1000000)) ms after it was added"
    keep page
}

shows_hits() {
    needs archives
    assert_status 0 archivist search '"the chain"'
    assert_contains "$output" "$page  Redirected" "id and title"
    assert_contains "$output" "${site}redirected" "the URL"
    assert_contains "$output" "*chain*" "the marked words"
    assert_eq "$page" "$(found "${site}redirected")" "a pasted URL"
    assert_eq "$page" "$(found 'ends -missing title:redirected cha*')" "other forms"
    assert_nothing "a tag that the page does not have" found chain --tag none
    assert_status 0 archivist search chian
    assert_contains "$output" "did you mean: chain" "a misspelt word"
    assert_status 2 archivist search
    assert_status 1 in_capsule setpriv --reuid=nobody --regid=nogroup --clear-groups archivist search chain
    assert_contains "$output" "run this with sudo" "the fix for a caller who may not read the archive"
}

# Programs ask on the bus; those that may not read the archive are refused.
answers_on_the_bus() {
    local answer
    needs archives
    answer=$(ask '{"words":"chain","tags":[],"limit":5}')
    assert_eq "$page" "$(gojq --raw-output '.hits[0].id' <<<"$answer")" "the page"
    assert_contains "$(gojq --compact-output '.hits[0].snippet' <<<"$answer")" '{"marked":true,"text":"chain"}' "the marked word"
    assert_eq chain "$(ask '{"words":"chian"}' | gojq --raw-output .meant)" "a similar word"
    assert_status 1 ask '{"tag":"chain"}'
    assert_contains "$output" "unknown field" "an unknown condition"
    assert_status 1 ask '{}'
    assert_contains "$output" "neither words nor conditions" "an empty question"
    in_capsule id searcher >/dev/null 2>&1 || in_capsule useradd --groups archivist searcher
    assert_status 0 ask_as searcher Manager Status
    assert_status 1 ask_as searcher Search Search s '{"words":"chain"}'
    assert_contains "$output" "Access denied" "a user of the group"
    wait_for 20 no_search_runs
    assert_eq "" "$(in_capsule find /run/archivist/searches /run/archivist/input -type f)" "files of searches"
}
ask() { ask_as root Search Search s "$1" | gojq --raw-output '.data[0]'; }
ask_as() { in_capsule runuser -u "$1" -- busctl --json=short call org.archivist1 /org/archivist1 org.archivist1."$2" "${@:3}"; }
no_search_runs() { ! has_unit 'archivist-search-*.service'; }

indexes_versions_and_deletions() {
    local other
    needs archives
    other=$(archivist add --json --wait --tag later --plugins wget,text "${site}redirected" | gojq --raw-output --slurp '.[0].crawl')
    other=$(query '.[0].id' list snapshots "$other")
    wait_for 20 finds "$other" "end of the chain"
    assert_eq "$other $page" "$(found chain --all)" "every snapshot"
    assert_eq "$other" "$(found '#later')" "the tag of a crawl"
    archivist delete --yes "$other" >/dev/null
    assert_eq "$page" "$(found chain --all)" "what is left, at once"
}

# What finds no usable index asks for another one.
builds_the_index_again() {
    local what before
    needs archives
    for what in 'rm -r INDEX/*' "rm -r ${index%/*}" 'echo old >INDEX/current/version' 'truncate --size=100 INDEX/current/*.store'; do
        in_capsule sh -c "${what//INDEX/$index}"
        assert_status 1 archivist search chain
        assert_contains "$output" "it is built again" "$what"
        wait_for 20 finds "$page" chain
        # Each search that found no index asked for a build.
        wait_for 20 is_built
    done
    assert_eq "root:archivist-hook 2700 root:archivist-hook 1770" \
        "$(in_capsule stat --format='%U:%G %a' "${index%/*}" $index | paste -sd' ')" "directories that were made again"
    before=$(build)
    assert_status 0 archivist search --rebuild
    wait_for 20 is_build_after "$before"
    assert_eq "$page" "$(found chain)" "after a build"
}
build() { in_capsule readlink $index/current; }
is_build_after() { [[ $(build) != "$1" ]] && is_built; }
# The link and one build.
is_built() { [[ $(in_capsule sh -c "ls $index | wc -l") == 2 ]] && index_is_idle; }
index_is_idle() { ! has_unit $unit; }

# The index of an older backup: fsck says what it lacks.
fsck_names_what_it_lacks() {
    local added
    needs archives
    wait_for 20 is_built
    assert_status 0 archivist fsck --quick
    in_capsule cp -a $index /var/lib/archivist/index/older
    added=$(archivist add --json --wait --plugins wget,text "${site}page/77" | gojq --raw-output --slurp '.[0].crawl')
    added=$(query '.[0].id' list snapshots "$added")
    wait_for 20 finds "$added" --url "${site}page/77"
    wait_for 20 index_is_idle
    in_capsule sh -c "rm -r $index && mv /var/lib/archivist/index/older $index"
    assert_status 3 archivist fsck --quick
    assert_contains "$output" "$index: it lacks $added" "the finding"
    assert_contains "$output" "archivist search --rebuild" "the repair"
    assert_status 0 archivist fsck --quick --repair
    wait_for 20 finds "$added" --url "${site}page/77"
    wait_for 20 is_built
    in_capsule truncate --size=100 "$index/$(build)/$(in_capsule sh -c "cd $index/current && ls *.store" | head -n 1)"
    assert_status 3 archivist fsck --quick
    assert_contains "$output" "$index: " "the damaged index"
    assert_status 0 archivist fsck --quick --repair
    wait_for 20 finds "$page" chain
    wait_for 20 is_built
    assert_status 0 archivist fsck --quick
}

continues_after_kills() {
    local crawl kills=0 last
    last=$(deadline 120)
    needs archives
    crawl=$(add --plugins wget,text $(seq -f "${site}page/%g" 30))
    until [[ $(query '.[0].status' list crawls "$crawl") == sealed ]] && index_is_idle; do
        if in_capsule systemctl kill --signal=KILL $unit 2>/dev/null; then kills=$((kills + 1)); fi
        [[ $kills -lt 5 ]] || wait_for 60 index_is_idle
        [[ $EPOCHSECONDS -lt $last ]] || fail "the index does not follow"
    done
    echo "figure: $kills kills"
    # Each kill is a failed attempt, after which the unit waits.
    wait_for 60 all_are_indexed
}
all_are_indexed() { [[ $(archivist search --json -n 0 --all --site 127.0.0.1 | gojq .total) == "$(query length list snapshots --limit 0)" ]]; }

cases archives shows_hits answers_on_the_bus indexes_versions_and_deletions builds_the_index_again fsck_names_what_it_lacks continues_after_kills
