#!/bin/bash
# The contract of hooks beyond what built-in plugins use: what hooks beside one another, and the records of a crawl's hooks, come to.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/archivist.sh"

clean() { forget_configuration; }

prepare() {
    # A finite hook that brings what three foreground hooks want: one of them finds it only when that is done.
    plugin testbrings on_Snapshot__10_testbrings.finite.bg.sh <<'SH'
#!/bin/sh
echo ready
until [ -e ../testlast/ran ]; do sleep 0.1; done
echo brought >brought.txt
SH
    plugin testmissed on_Snapshot__20_testmissed.sh <<'SH'
#!/bin/sh
cat ../testbrings/brought.txt >/dev/null && cp ../testbrings/brought.txt got.txt
SH
    plugin testhalf on_Snapshot__21_testhalf.sh <<'SH'
#!/bin/sh
echo half >half.txt
exit 1
SH
    plugin testnever on_Snapshot__22_testnever.sh <<'SH'
#!/bin/sh
exit 1
SH
    plugin testdaemon on_Snapshot__15_testdaemon.daemon.bg.sh <<'SH'
#!/bin/sh
trap 'date +%s%N >ended.txt; exit 0' TERM
echo ready
while :; do sleep 0.1; done
SH
    plugin testlast on_Snapshot__30_testlast.sh <<'SH'
#!/bin/sh
echo ran >ran
SH
    configure </dev/null
}

# crawl PLUGINS URL: sets $crawl, which is over.
crawl() {
    crawl=$(add --plugins "$1" "$2")
    wait_for 60 is_over "$crawl"
}

# What failed and left nothing while a finite hook was at work has one more try after that one, beside the daemons.
tries_again_what_missed_something() {
    crawl testbrings,testmissed,testhalf,testnever,testdaemon,testlast http://contract.test/again
    assert_eq "testbrings=succeeded/1 testdaemon=succeeded/1 testhalf=failed/1 testlast=succeeded/1 testmissed=succeeded/2 testnever=failed/2" \
        "$(query '*sorted(f"{r["plugin"]}={r["status"]}/{r["attempts"]}" for r in d),' list results "$crawl")" "results and attempts"
    assert_eq "testmissed testnever" "$(query '*[r["plugin"] for r in sorted(d, key=lambda r: r["started_at"])][-2:],' \
        list runs "$crawl" --limit 0)" "the last runs, in order"
    crawl testnever,testdaemon http://contract.test/alone
    assert_eq "testdaemon=1 testnever=1" "$(query '*sorted(f"{r["plugin"]}={r["attempts"]}" for r in d),' list results "$crawl")" \
        "attempts where no finite hook is"
}

trap clean EXIT
prepare
tries_again_what_missed_something
assert_nothing_is_left
trap - EXIT
clean
assert_system_running
