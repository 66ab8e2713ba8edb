#!/bin/bash
# N7: two nodes with one name, and a node that was cloned with its disk. The newer is refused with a reason; nothing is lost.
# In a full run alone.
source "$(dirname "$0")/lib.sh"

PAGES=42

clean() {
    capsule stop "$network-clone" 2>/dev/null || true
    on 3 sh -c 'sed -i "s/^Name=.*/Name=n3/" /etc/archivist/archivist.conf.d/*.conf; systemctl restart archivist-fleet'
}

said() { on 3 journalctl --quiet --no-pager --output=cat --unit=archivist-fleet --since=-1min; }

refuses_a_second_node_of_a_name() {
    local crawl
    crawl=$(add 1 name $PAGES 14 300)
    on 3 sh -c 'sed -i "s/^Name=.*/Name=n1/" /etc/archivist/archivist.conf.d/*.conf; systemctl restart archivist-fleet' || true
    wait_for 30 mentions n1
    on 3 sh -c 'sed -i "s/^Name=.*/Name=n3/" /etc/archivist/archivist.conf.d/*.conf; systemctl restart archivist-fleet'
    wait_for $((LEASE * 2 + 60)) is_recorded "$crawl" $PAGES
    assert_recorded_once "$crawl" name $PAGES
    assert_polite name
}

mentions() { [[ $(said) == *"'$1'"* ]]; }

refuses_a_clone() {
    local crawl
    crawl=$(add 1 clone $PAGES 14 300)
    wait_for 30 started clone 1
    capsule clone "$network-3" "$network-clone"
    capsule boot "$network-clone" "$(<"$lab/up")" --keep --network "$(network path "$network" clone)"
    wait_for $((LEASE * 2 + 60)) is_recorded "$crawl" $PAGES
    assert_recorded_once "$crawl" clone $PAGES
    assert_polite clone
    assert_eq 0 "$(grep -c " 10.77.0.7 " "$lab/web.log")" "requests of the clone"
    assert_contains "$(capsule run "$network-clone" journalctl --quiet --no-pager --output=cat --unit=archivist-fleet)" clone "what the clone logs"
}

cases refuses_a_second_node_of_a_name refuses_a_clone
