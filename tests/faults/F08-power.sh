#!/bin/bash
# F8: the power of a machine is cut at random times while pages are added and archived; unflushed writes are lost in part
# and at random (tests/machine/vm). After each boot the database is intact, acknowledged crawls exist, finished results
# and their files are unchanged, and all crawls finish. The first case is an orderly reboot with running hooks.
source "$(dirname "$0")/machine.sh"

CUTS=$(times 2 20) HOOKS=3
said=$work/said

clean() {
    [[ -z ${talk-} ]] || kill "$talk" 2>/dev/null || true
    forget_configuration
}

prepare() {
    need_machine
    put_tool
    many_hooks testpower $HOOKS <<'SH'
#!/bin/bash
hook=${0##*/}
head -c 20000 /dev/urandom >"$hook.bin"
sleep 0.$((RANDOM % 9 + 1))
sha256sum "$hook.bin" >"$hook.sum"
echo '{"type": "ArchiveResult", "status": "succeeded", "output_str": "'"$hook.sum"'"}'
SH
    configure <<'END'
[Orchestrator]
RetrySec=1s
RetryMaxSec=2s
AttemptsMax=1000
END
}

# The machine prints the crawls that it acknowledged and the results that it saw, until its power is cut.
talk() {
    tool promises testpower >>"$said" 2>/dev/null &
    talk=$!
}

promises() { grep -c "^$1 " "$said" || true; }

has_promised() { (($(promises added) > $1)); }

a_reboot_is_a_pause() {
    local before after
    talk
    wait_for 90 has_promised 2
    before=$(boot_id)
    capsule reboot "$CAPSULE"
    wait "$talk" || true
    talk=''
    after=$(boot_id)
    [[ $before != "$after" ]] || fail "the machine was not booted again"
    assert_system_running
    assert_kept
    wait_for 300 is_idle
    assert_eq 0 "$(tool ghosts)" "runs on record without a unit after a reboot"
    figure "F8 reboot under work: $kept"
}

boot_id() { in_capsule cat /proc/sys/kernel/random/boot_id; }

is_idle() { in_capsule archivist status --json | evaluate '(.running | length) == 0 and (.crawls | keys - ["sealed"]) == []' | grep -q true; }

# Compares these with the database, and sets $kept.
assert_kept() {
    kept=$(tool kept <"$said")
    assert_contains "$kept " "integrity=ok lost=0 undone=0 spoilt=0 " "what was promised"
}

the_power_is_cut() {
    local cut word pieces=0
    for ((cut = 1; cut <= CUTS; cut++)); do
        talk
        wait_for 120 has_promised "$(promises added)"
        sleep "$((RANDOM % 8)).$((RANDOM % 10))"
        word=$(capsule power-cut "$CAPSULE" "$RANDOM")
        wait "$talk" || true
        talk=''
        word=${word#*lost=}
        pieces=$((pieces + ${word%% *}))
        capsule boot "$CAPSULE" "${RELEASE-trixie}" --keep
        assert_kept
    done
    wait_for 600 is_idle
    assert_kept
    assert_eq 0 "$(tool ghosts)" "runs on record without a unit"
    figure "F8 power cuts=$CUTS, pieces of 4 KiB lost=$pieces, $kept"
    assert_nothing_is_left
}

cases a_reboot_is_a_pause the_power_is_cut
