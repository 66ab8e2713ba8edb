#!/bin/bash
# Commands that mean a whole fleet: lists, reasons and orders, on one node next to rows of a second one, and without the database.
# Skipped without Debian's postgresql.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"
source "$(dirname "$0")/registries.sh"
source "$(dirname "$0")/postgresql.sh"

# A page of the other node, far from the ids that the database gives.
page=900000 crawl_of_other=90000
store=/srv/test-store

prepare() {
    forget_pages
    plugin testpage <<'EOF'
#!/bin/sh
echo page >page.txt
EOF
    configure </dev/null
    start_site
    start_postgresql
    archivist fleet init "$socket" --name web1 >/dev/null
    wait_for 20 connected
    sql archive "INSERT INTO archivist.node (id, name, machine, boot, seen) VALUES (99, 'web2', 'm', 'b', now() + interval '1 hour')" \
        "INSERT INTO archivist.crawl (id, max_depth, document, created_at) VALUES ($crawl_of_other, 0, '{\"url\": \"https://me:secret@b.example/\"}', now())" \
        "INSERT INTO archivist.part VALUES (99, $crawl_of_other)" \
        "INSERT INTO archivist.host (key, owner, epoch, lease_until, delay_ms, ready_at, from_page, last_page)
            VALUES ('b.example', 99, 1, now() + interval '1 hour', 5000, now(), $page, $page)" \
        "INSERT INTO archivist.page (id, crawl, depth, host, url, url_key, node, epoch, attempts)
            VALUES ($page, $crawl_of_other, 0, 'b.example', 'https://me:secret@b.example/' || chr(27) || '[31m', 'x', 99, 1, 1)" \
        "INSERT INTO archivist.tally (crawl, pages, open, bytes) VALUES ($crawl_of_other, 1, 1, 0)" >/dev/null
}

clean() {
    leave_fleet
    stop_site
    forget_pages
    forget_configuration
}

connected() { [[ $(unit_property archivist-fleet.service StatusText) == *"connected to"* ]]; }

wanted() { [[ $(sql archive "SELECT wanted FROM archivist.page WHERE id = $page") == "$1" ]]; }

lists_name_the_node() {
    assert_eq "started web2" "$(query '.[0] | [.status, .node]' list snapshots c$crawl_of_other)" "the page of the other node"
    assert_eq web2 "$(query '.[] | field("node")' list hosts)" "the node of its host"
    assert_eq web2 "$(query '.[0].nodes' list crawls)" "the nodes of its crawl"
    assert_nothing "the pages of this machine" query '.[].id' list snapshots --local
    local shown
    shown=$(archivist show s$page; archivist list snapshots)
    assert_contains "$shown" "Node: web2" "the page"
    [[ $shown != *secret* && $shown != *$'\e['* ]] || fail "an output has a password or an escape sequence: $shown"
    assert_contains "$(archivist show s1 2>&1 || true)" "there is no s1" "an unknown page"
}

reasons_name_the_lease() {
    assert_contains "$(archivist why s$page)" "leased to web2 until 20" "why the page is not done"
    assert_contains "$(archivist why s$page)" "host delay 5.0s" "why the page is not done"
    assert_contains "$(archivist why c$crawl_of_other)" "nodes have 1 of its pages: web2" "why the crawl is not done"
    assert_contains "$(archivist logs s$page 2>&1 || true)" "run there: archivist logs s$page" "its journal"
    assert_contains "$(archivist status)" "Node: web1 (this machine), connected" "the status"
    assert_eq "web1 web2" "$(query '[.fleet.nodes[].name]' status)" "the nodes in the status"
    assert_eq null "$(query '.fleet' status --local)" "the fleet in the status of this machine"
}

# Two pages that ended, one on each node, and the one that the other node has.
plots_the_nodes() {
    local ended=$((page - 2)) drawn said
    sql archive "INSERT INTO archivist.page (id, crawl, depth, host, url, url_key, status, node, took_ms, ended_at)
            SELECT $ended + (name = 'web2')::int, $crawl_of_other, 0, 'b.example', 'https://b.example/' || name, name::bytea, 'sealed', id, 3000, now()
            FROM archivist.node WHERE name IN ('web1', 'web2')" \
        "INSERT INTO archivist.tally (crawl, pages, open, bytes) VALUES ($crawl_of_other, 2, 0, 0)" >/dev/null
    drawn=$(archivist plot c$crawl_of_other)
    assert_contains "$drawn" "<title>web1: 1 page; started 20" "the picture"
    assert_contains "$drawn" "<title>web2: 2 pages; started 20" "the picture"
    assert_contains "$drawn" "s$((ended + 1)); https://b.example/web2, depth 0; on web2; started 20" "the picture"
    [[ $drawn != *secret* && $drawn != *$'\e['* ]] || fail "the picture has a password or an escape sequence: $drawn"
    in_capsule python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.stdin)' <<<"$drawn" || fail "the picture is no XML"
    said=$(archivist plot --limit 1 c$crawl_of_other 2>&1 >/dev/null)
    assert_eq "left out: 2 of 3 pages; --limit 0 draws all" "$said" "what it says of the rest"
    assert_contains "$(archivist plot s$page)" "on web2" "the picture of a page"
    assert_contains "$(archivist plot --local c$crawl_of_other 2>&1 || true)" "there is no c$crawl_of_other" "the picture of this machine"
    sql archive "DELETE FROM archivist.page WHERE id IN ($ended, $ended + 1)" \
        "DELETE FROM archivist.tally WHERE crawl = $crawl_of_other AND pages = 2" >/dev/null
}

orders_reach_pages_of_other_nodes() {
    assert_eq "s$page paused" "$(archivist pause s$page)" "what pause says"
    wait_for 20 wanted pause
    archivist resume s$page >/dev/null
    wait_for 20 wanted run
    assert_contains "$(archivist cancel s123456 2>&1 || true)" "there is no snapshot s123456" "an unknown page"
    # The other node does not answer: it cannot stop the page.
    sql archive "UPDATE archivist.node SET seen = now() - interval '14 s' WHERE id = 99" >/dev/null
    assert_contains "$(archivist fleet nodes)" "not seen for" "the state of the other node"
    assert_contains "$(archivist doctor || true)" "node 'web2' was not seen for" "what the doctor says"
    local said
    said=$(archivist cancel --wait s$page 2>&1) && fail "cancel --wait did not wait: $said"
    assert_contains "$said" "node 'web2', which was not seen for" "what cancel says"
    wait_for 20 wanted cancel
    sql archive "UPDATE archivist.node SET seen = now() + interval '1 hour' WHERE id = 99" >/dev/null
}

# A page that was archived here first and is the other node's now, and one that only the other node has.
newest_copy_is_named() {
    local id shown
    id=$(sql archive "SELECT id FROM archivist.page WHERE status = 'sealed' AND id <> $page LIMIT 1")
    assert_status 0 archivist open --print "s$id"
    sql archive "UPDATE archivist.page SET copies = ARRAY[node], node = 99, directory = '/there/s$id' WHERE id = $id" >/dev/null
    shown=$(archivist open --print "s$id" 2>&1) && fail "an older copy was opened: $shown"
    assert_contains "$shown" "s$id is on node 'web2', in '/there/s$id'; run there: archivist open s$id" "where the newest copy is"
    assert_contains "$shown" "an older copy is on this machine, in '/var/lib/archivist/archive/" "where the older copy is"
    assert_eq "web2 /there/s$id" "$(query '.[0] | [.node, .directory]' list snapshots "s$id")" "the page in the list"
    assert_contains "$(archivist show "s$id")" "Older: web1" "the page"
    # The other machine has archived it, so it is not new here either.
    sql archive "UPDATE archivist.page SET url_key = substr(sha256('https://only.example/'), 1, 16), url = 'https://only.example/' WHERE id = $id" >/dev/null
    assert_contains "$(archivist add --wait --only-new --plugins testpage https://only.example/ 2>&1)" "nothing new" "what add says"
}

# The other node has copied its page to the store that both have.
opens_a_page_of_another_node_through_the_store() {
    needs newest_copy_is_named
    local id dir said object archive=/var/lib/archivist/archive
    id=$(sql archive "SELECT id FROM archivist.page WHERE directory = '/there/s' || id")
    dir=$(query '.[0].directory' list snapshots "s$id" --local)
    in_capsule install -d -o archivist -g archivist $store
    printf '[Fleet]\nStore=%s\n' $store | configure
    wait_for 20 connected
    wait_for 30 stores_one "s$id"
    object=$(in_capsule find $store -name "s$id-*.tar")
    said=$(archivist open --print "s$id" 2>&1) && fail "it was opened: $said"
    assert_contains "$said" "run there: archivist open s$id" "a page whose directory is none of an archive"
    sql archive "UPDATE archivist.page SET directory = '/there/archive/${dir#"$archive/"}' WHERE id = $id" >/dev/null
    said=$(archivist open --print "s$id" 2>&1)
    assert_contains "$said" "s$id is on node 'web2'; these files are from its copy in the store" "what it says"
    assert_contains "$said" "$archive/.fetched/s$id/index.html" "the page"
    assert_eq "" "$(in_capsule diff -r "$dir" "$archive/.fetched/s$id" 2>&1 || true)" "differences from the page"
    assert_eq archivist "$(in_capsule stat -c %U "$archive/.fetched/s$id/index.html")" "owner of the files"
    in_capsule sh -c "printf x | dd of='$object' bs=1 seek=1100 conv=notrunc status=none"
    said=$(archivist open --print "s$id" 2>&1) && fail "a damaged copy was opened: $said"
    assert_contains "$said" "run there: archivist open s$id" "what it says of a damaged copy"
    assert_contains "$said" "the store does not give it: " "why it says so"
    in_capsule test ! -e "$archive/.fetched/s$id" || fail "something of the damaged copy stays"
    configure </dev/null
    in_capsule rm -rf $store
    wait_for 20 connected
}

stores_one() { [[ $(in_capsule find $store -name "$1-*.tar" | wc -l) == 1 ]]; }

lists_are_in_the_order_of_time() {
    sql archive "INSERT INTO archivist.crawl (id, max_depth, document, created_at) VALUES ($((crawl_of_other - 1)), 0, '{}', now() + interval '1 minute')" >/dev/null
    assert_eq "c$((crawl_of_other - 1))" "$(query '.[0].id' list crawls --limit 1)" "the newest crawl"
    sql archive "DELETE FROM archivist.crawl WHERE id = $((crawl_of_other - 1))" >/dev/null
}

add_waits_for_the_fleet() {
    local said
    said=$(archivist add --wait --plugins testpage "${site}page/1")
    assert_contains "$said" "sealed: 1 page" "what it says"
    assert_eq sealed "$(sql archive "SELECT status FROM archivist.page WHERE id <> $page")" "the page in the database"
    said=$(archivist plot "s$(sql archive "SELECT id FROM archivist.page WHERE id <> $page")")
    assert_contains "$said" archivist-hook-testpage "the picture of a page of this machine"
    # The node does not wait a minute for more pages: there are none.
    wait_for 20 own_crawl_is_sealed
}

own_crawl_is_sealed() { [[ $(query '.[0].status' list crawls --local) == sealed ]]; }

works_without_the_database() {
    in_capsule systemctl stop postgresql.service "$cluster"
    local began=$EPOCHREALTIME
    assert_status 4 archivist list crawls
    ((${EPOCHREALTIME/./} - ${began/./} < $(times 20 4) * 1000000)) || fail "the answer took too long"
    assert_contains "$(archivist list crawls 2>&1 || true)" "for this machine alone, use --local" "what list says"
    assert_eq 4 "$(archivist status >/dev/null 2>&1 || echo $?)" "the exit status of status"
    archivist list crawls --local >/dev/null
    crawl=$(add --plugins testpage "${site}page/2")
    assert_contains "$(archivist cancel "$crawl")" "the other nodes follow" "what cancel says"
    in_capsule systemctl start postgresql.service "$cluster"
    wait_for 40 cancelled_in_fleet "${crawl#c}"
}

cancelled_in_fleet() { [[ $(sql archive "SELECT wanted FROM archivist.crawl WHERE id = $1") == cancel ]]; }

works_without_the_service() {
    in_capsule systemctl stop archivist-fleet.service
    assert_contains "$(archivist why s$page 2>&1 || true)" "the fleet service does not run" "why without the service"
    archivist list crawls --local >/dev/null
    in_capsule systemctl start archivist-fleet.service
    wait_for 20 connected
}

cases lists_name_the_node plots_the_nodes reasons_name_the_lease orders_reach_pages_of_other_nodes add_waits_for_the_fleet newest_copy_is_named opens_a_page_of_another_node_through_the_store lists_are_in_the_order_of_time works_without_the_database works_without_the_service
