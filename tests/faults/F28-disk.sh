#!/bin/bash
# F28: hooks fill the disk of the archive as fast as they can, by fallocate(2), by many writers, and several hooks at once: each is
# ended, its files are removed, the free space is what it was, and other hooks have their results. The disk is a file with holes,
# so that preallocated blocks take no space of the machine; the figures have the least free space.
source "$(dirname "$0")/lib.sh"

# Preallocated, and written: the latter bounds what the test takes of the disk of the machine.
SIZE=64G SMALL=6G
state=/var/lib/archivist
image=/var/cache/archivist-test.img
sampler=/opt/faults/sampler.py

clean() {
    in_capsule systemctl stop test-sampler.service 2>/dev/null || true
    detach
    # The pages are gone with their disk, and the orchestrator writes nothing to an archive that lacks all of them.
    forget_pages
    in_capsule rm -f $sampler
    forget_configuration
}

prepare() {
    command -v mkfs.ext4 >/dev/null || bail "mkfs.ext4 is not installed: apt install e2fsprogs"
    in_capsule mkdir -p "${sampler%/*}"
    # Prints the least number of available bytes at its end.
    in_capsule sh -c "cat >$sampler" <<'PY'
import os, signal, sys
least = [1 << 62]
def end(*_):
    print(least[0], flush=True)
    os._exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    found = os.statvfs(sys.argv[1])
    least[0] = min(least[0], found.f_bavail * found.f_frsize)
PY
    # As many processes as processors of a common machine, each with files of 4 GiB until the disk is full.
    plugin testfallocates <<'PY'
#!/usr/bin/python3
import itertools, os, time
for process in range(3):
    if os.fork() == 0:
        break
else:
    process = 3
for number in itertools.count():
    try:
        with open("full%d-%d" % (process, number), "wb") as file:
            os.posix_fallocate(file.fileno(), 0, (4 << 30) - 4096)
    except OSError:
        time.sleep(20)
PY
    plugin testwriters <<'PY'
#!/usr/bin/python3
import itertools, os, time
for process in range(7):
    if os.fork() == 0:
        break
else:
    process = 7
block = b"x" * (4 << 20)
for number in itertools.count():
    try:
        with open("full%d-%d" % (process, number), "wb", buffering=0) as file:
            for _ in range(256):
                file.write(block)
    except OSError:
        time.sleep(60)
PY
    plugin testbefore on_Snapshot__05_testbefore.sh <<'SH'
#!/bin/sh
echo before >file
SH
    plugin testafter on_Snapshot__90_testafter.sh <<'SH'
#!/bin/sh
echo after >file
SH
    configure </dev/null
}

# attach SIZE: a file system of this size as the archive.
attach() {
    in_capsule sh -c "systemctl stop $service; rm -f $image"
    truncate -s "$1" "$work/image"
    mkfs.ext4 -q -F -m 0 -E lazy_itable_init=1,lazy_journal_init=1 "$work/image"
    cp --sparse=always "$work/image" "$("$ROOT/tests/machine/capsule" path "$CAPSULE")$image"
    rm "$work/image"
    in_capsule sh -c "[ -e /dev/loop-control ] || mknod /dev/loop-control c 10 237
        for n in 0 1 2 3 4 5 6 7; do [ -e /dev/loop\$n ] || mknod /dev/loop\$n b 7 \$n; done
        mount -o loop $image $state/archive &&
            systemd-tmpfiles --create archivist.conf && mkdir $state/archive/.new" || skip "no loop devices"
    configure <<'END'
[Orchestrator]
HostWorkers=4
WorkersPerKind=4
HostDelaySec=0
END
}

detach() { in_capsule sh -c "systemctl stop $service; mountpoint -q $state/archive && umount $state/archive; rm -f $image" 2>/dev/null || true; }

free() { in_capsule df --output=avail -B1M $state/archive | tail -n 1 | xargs; }

# attacked WHAT PLUGIN PAGES: archives pages of which each has a hook that fills the disk.
attacked() {
    local crawl before least
    before=$(free)
    in_capsule systemd-run --quiet --unit=test-sampler --property=Type=exec --property=StandardOutput=file:/run/test-sampler \
        python3 $sampler $state/archive
    crawl=$(in_capsule sh -c "seq -f http://$2.test/%g $3 | archivist add --json --plugins testbefore,$2,testafter -" | evaluate '.crawl')
    finish "$crawl" 300
    in_capsule systemctl stop test-sampler.service
    least=$(($(in_capsule tail -n 1 /run/test-sampler) >> 20))
    assert_eq "testafter=succeeded testbefore=succeeded $2=failed" \
        "$(query 'map("\(.plugin)=\(.status)") | unique' list results "$crawl" --limit 0)" "results"
    # A hook that found a full disk may have written nothing that matters.
    assert_contains "$(query "of(\"$2\") | map(.error) | join(\"; \")" list results "$crawl" --limit 0)" "(limit: disk); removed what it wrote: " \
        "the reasons of the hooks"
    assert_nothing "files of the hooks" in_capsule find $state/archive -name 'full*'
    ((before - $(free) < 64)) || fail "$before MiB were free, and $(free) MiB are"
    figure "F28 $1, $3 at once: of $before MiB free, at least $least MiB were left, and $(free) MiB at the end"
}

preallocating_hooks() {
    attach "$SIZE"
    attacked "4 processes with fallocate" testfallocates 1
    [[ ${EXTENT-short} != full ]] || attacked "4 processes with fallocate" testfallocates 3
    detach
}

writing_hooks() {
    [[ ${EXTENT-short} == full ]] || skip "in full runs: it writes 25 GB"
    attach "$SMALL"
    attacked "8 writers" testwriters 1
    attacked "8 writers" testwriters 3
    detach
}

cases preallocating_hooks writing_hooks
