#!/bin/bash
# One browser for the pages of a crawl: number of starts, remaining processes and files, death of the browser.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

PLUGINS=screenshot,pdf,dom,title,outlinks

clean() {
    stop_site
    forget_configuration
}

prepare() {
    start_site
    configure </dev/null
}

# launches CRAWL: the units that started a browser, over the crawl and its pages.
launches() {
    query 'map(select(.hook == "on_CrawlSetup__90_chromium_launch.daemon.bg")) | length' list runs "$1" --limit 0
}

# results CRAWL PLUGIN: prints the distinct states of its results.
results() { query "of(\"$2\") | map(select(.owner | startswith(\"s\")).status) | unique" list results "$1" --limit 0; }

add_pages() { add "$@" "${site}page/1" "${site}page/2" "${site}page/3" "${site}page/4" "${site}page/5" \
    "${site}page/6" "${site}page/7" "${site}page/8" "${site}hostile" "${site}js-title"; }

ten_pages_start_one_browser() {
    local crawl plugin
    crawl=$(add_pages --plugins $PLUGINS)
    wait_for 120 is_over "$crawl"
    assert_eq 10 "$(query 'length' list snapshots "$crawl" --limit 0)" "pages"
    assert_eq 1 "$(launches "$crawl")" "browsers of a crawl of ten pages"
    for plugin in chromium screenshot pdf dom title; do
        assert_eq succeeded "$(results "$crawl" $plugin)" "how $plugin ended"
    done
    assert_nothing_is_left
    ! in_capsule find /var/lib/archivist/archive '(' -name cdp_url.txt -o -name cdp.sock -o -name target_id.txt ')' | grep . ||
        fail "markers of a browser that is gone"
}

# Those that use the tab do not: one changes what the other saves.
hooks_that_do_not_need_each_other_overlap() {
    local crawl pair first second overlaps
    crawl=$(add --plugins headers,screenshot,pdf,dom,title,outlinks "${site}page/1")
    wait_for 60 is_over "$crawl"
    for pair in 'headers screenshot true' 'title outlinks true' 'screenshot pdf false' 'pdf dom false' 'dom title false'; do
        read -r first second overlaps <<<"$pair"
        assert_eq "$overlaps" "$(query "of(\"$first\")[0].ended_at > of(\"$second\")[0].started_at" list runs "$crawl" --limit 0)" \
            "$first overlaps $second"
    done
}

# A retry of one page works after the browser of its crawl has ended.
a_retry_brings_a_browser() {
    local crawl id
    crawl=$(add --plugins screenshot "${site}page/9")
    wait_for 60 is_over "$crawl"
    id=$(query '.[0].id' list snapshots "$crawl")
    assert_status 0 archivist retry "$id" --hook screenshot
    wait_for 60 is_over "$crawl"
    assert_eq succeeded "$(results "$crawl" screenshot)" "a picture that was taken again"
    assert_eq 2 "$(launches "$crawl")" "browsers of a crawl that was tried again"
    assert_nothing_is_left
}

no_hook_needs_a_browser() {
    local crawl
    crawl=$(add --plugins title,outlinks "${site}page/1")
    wait_for 60 is_over "$crawl"
    assert_eq 0 "$(launches "$crawl")" "browsers for title and outlinks alone"
    assert_eq succeeded "$(results "$crawl" title)" "title without a browser"
}

one_for_each_page() {
    local crawl
    crawl=$(add --plugins screenshot --set CHROME_ISOLATION=snapshot "${site}page/1" "${site}page/2")
    wait_for 90 is_over "$crawl"
    assert_eq "skipped" "$(query 'map(select(.owner | startswith("c")).status) | unique' list results "$crawl")" "the crawl's browser"
    assert_eq succeeded "$(results "$crawl" screenshot)" "pictures from browsers of their own"
    assert_nothing_is_left
}

# kill -9 of the browser while pages wait for it: their results have the reason, nothing hangs, and later pages get a new browser.
dies() {
    local crawl number begin=$EPOCHSECONDS unit
    crawl=$(add_pages --plugins screenshot "${site}slow?s=20")
    number=${crawl#c} unit=archivist-hook-chromium-chromium_launch-c$number.service
    wait_for 30 has_unit "archivist-hook-chromium-chromium_tab-s*.service"
    in_capsule sh -c "for pid in \$(cat /sys/fs/cgroup\$(systemctl show --property=ControlGroup --value $unit)/cgroup.procs); do
        tr '\\0' ' ' </proc/\$pid/cmdline | grep -q -- --remote-debugging-pipe && ! tr '\\0' ' ' </proc/\$pid/cmdline | grep -q -- --type= &&
            kill -9 \$pid; done; true"
    wait_for 120 is_over "$crawl"
    ((EPOCHSECONDS - begin < 120)) || fail "a crawl whose browser died took $((EPOCHSECONDS - begin)) s"
    assert_eq "failed succeeded" "$(results "$crawl" chromium)" "pages while a browser died, and after it"
    assert_contains "$(results "$crawl" screenshot)" succeeded "pictures after a browser died"
    assert_eq 2 "$(launches "$crawl")" "browsers"
    assert_contains "$(query 'map(select(.status == "failed").error // "") | unique' list results "$crawl" --limit 0)" "lost the connection to chromium" "why pages failed"
    assert_contains "$(archivist logs "$crawl")" "chromium_launch.daemon.bg: the daemon failed: " "the log of the failure"
    assert_nothing_is_left
}

# A browser that dies repeatedly is not started again, and the results have the reason.
dies_too_often() {
    local crawl unit time
    plugin testhold <<'SH'
#!/bin/sh
until [ -e /srv/archivist-test/go ]; do sleep 0.1; done
SH
    restart
    in_capsule rm -f $signs/go
    crawl=$(add --plugins testhold,screenshot "${site}page/1")
    unit=archivist-hook-chromium-chromium_launch-$crawl.service
    wait_for 30 has_unit "archivist-hook-testhold-s*.service"
    for time in 1 2 3 4; do
        wait_for 30 is_up "$unit" "$crawl" "$time"
        in_capsule systemctl kill --signal=KILL "$unit"
    done
    wait_for 20 is_down "$unit"
    in_capsule touch $signs/go
    wait_for 60 is_over "$crawl"
    assert_eq "4 failed" "$(launches "$crawl") $(query 'of("chromium") | map(select(.owner | startswith("c")).status)' \
        list results "$crawl")" "launches, and the browser's result"
    assert_eq failed "$(results "$crawl" screenshot)" "a picture without a browser"
    assert_nothing_is_left
}

# is_up UNIT CRAWL N: the Nth browser of the crawl is ready.
is_up() {
    [[ $(launches "$2") == "$3" ]] && has_unit "$1" &&
        in_capsule grep -q product "$(query '.[0].directory' list crawls "$2")/chromium/browser.json" &&
        in_capsule test -S "$(query '.[0].directory' list crawls "$2")/chromium/cdp.sock"
}

is_down() { ! has_unit "$1"; }

# Cookies of a file, and of a profile that a browser wrote: all plugins see what the member sees.
all_plugins_see_what_a_member_sees() {
    local crawl page kind who persona
    local -A pictures
    in_capsule curl --silent --cookie-jar /srv/test-club --output /dev/null "${site}login"
    in_capsule chromium --headless=new --no-sandbox --password-store=basic --user-data-dir=/srv/test-club-profile --dump-dom "${site}login" >/dev/null 2>&1
    archivist persona import club-file --cookies /srv/test-club
    archivist persona import club-profile --profile /srv/test-club-profile
    for kind in guest file profile; do
        who=MEMBER persona=(--persona "club-$kind")
        [[ $kind != guest ]] || who=GUEST persona=()
        crawl=$(add "${persona[@]}" --plugins wget,dom,title,screenshot,pdf "${site}club")
        wait_for 90 is_over "$crawl"
        page=$(query '.[0].directory' list snapshots "$crawl")
        assert_eq succeeded "$(query 'map(select(.owner | startswith("s")) | select(.plugin | IN("dom", "title", "screenshot", "pdf", "wget")).status) | unique' list results "$crawl" --limit 0)" "results as $kind"
        assert_eq "Club: $who" "$(in_capsule cat "$page/title/title.txt")" "title as $kind"
        assert_eq "$who" \
            "$(in_capsule sh -c "grep -rhoE --include='*.html' 'Welcome, [A-Z]+' $page/dom | sort -u | cut -d' ' -f2")" "dom as $kind"
        [[ $kind == profile ]] || assert_eq "$who" \
            "$(in_capsule sh -c "grep -rhoE --include='*.html' 'Welcome, [A-Z]+' $page/wget | sort -u | cut -d' ' -f2")" "wget as $kind"
        pictures[$kind]=$(in_capsule sh -c "md5sum <$page/screenshot/screenshot.png")
    done
    [[ ${pictures[guest]} != "${pictures[file]}" ]] || fail "the picture shows the guest's page"
    assert_eq "${pictures[file]}" "${pictures[profile]}" "pictures of two members"
    archivist persona remove club-file
    archivist persona remove club-profile
    in_capsule rm -rf /srv/test-club /srv/test-club-profile
}

cases all_plugins_see_what_a_member_sees ten_pages_start_one_browser hooks_that_do_not_need_each_other_overlap a_retry_brings_a_browser no_hook_needs_a_browser one_for_each_page dies dies_too_often
