#!/bin/bash
# F23: a kernel with AppArmor. The profile of browsers is loaded under the sandbox of its service, hooks with a browser run in it, other
# hooks do not, and without it nothing fails. Debian's kernel does not restrict user namespaces, so the test overrides the conditions.
source "$(dirname "$0")/machine.sh"

unit=archivist-apparmor.service
drop_in=/etc/systemd/system/$unit.d/90-test.conf
namespace='cat /proc/self/attr/current; unshare --user cat /proc/self/attr/current'

clean() {
    in_capsule sh -c "systemctl stop $unit; rm -rf ${drop_in%/*}; systemctl daemon-reload"
}

prepare() { need_machine; }

# label HOOK: the labels of a hook and of its child in a user namespace.
label() {
    in_capsule systemd-run --quiet --wait --pipe --collect --uid=archivist-hook-16 --unit="archivist-hook-$1-test.service" \
        sh -c "$namespace" 2>&1 | xargs
}

is_inert_on_debian() {
    in_capsule test -d /sys/kernel/security/apparmor || skip "the kernel has no AppArmor"
    in_capsule systemctl start $unit
    assert_eq "no inactive success" "$(in_capsule systemctl show --property=ConditionResult,ActiveState,Result --value $unit | sort | xargs |
        sed 's/inactive no success/no inactive success/')" "the service"
    assert_eq "unconfined unconfined" "$(label chromium)" "a hook with a browser"
    assert_contains "$(in_capsule archivist doctor 2>&1 || true)" "user namespaces  available" "doctor"
}

browsers_run_in_the_profile() {
    needs is_inert_on_debian
    in_capsule sh -c "mkdir -p ${drop_in%/*}; printf '[Unit]\nConditionPathExists=\n[Service]\nExecCondition=\n' >$drop_in; systemctl daemon-reload"
    in_capsule systemctl start $unit
    assert_eq "archivist-browser (unconfined)" "$(in_capsule grep ^archivist /sys/kernel/security/apparmor/profiles)" "loaded profile"
    assert_eq "archivist-browser (unconfined) archivist-browser (unconfined)" "$(label chromium)" "a hook with a browser"
    assert_contains "$(label wget)" "unconfined" "a hook without a browser"
    in_capsule systemctl stop $unit
    ! in_capsule grep ^archivist /sys/kernel/security/apparmor/profiles || fail "the profile is still loaded"
}

# The package passt has a profile of pasta, which may execute nothing outside of /usr/bin. The machine has no network to install passt and
# iproute2: their files, the profile among them, come from the root of a capsule.
network_starts_under_the_profile_of_pasta() {
    needs is_inert_on_debian
    local root network=archivist-network@crawl-1.service
    root=$("$ROOT/tests/machine/capsule" base "${RELEASE-trixie}")
    for package in passt iproute2 libbpf1 libelf1t64 libmnl0; do chroot "$root" dpkg -L "$package"; done |
        grep -vE '^/usr/share/(doc|man|locale)' | while read -r file; do [[ -d $root$file ]] || echo ".$file"; done >"$work/files"
    tar -C "$root" -cf "$work/network.tar" -T "$work/files"
    capsule cp "$work/network.tar" "$CAPSULE:/root/network.tar"
    in_capsule sh -c 'tar -C / -xf /root/network.tar && ldconfig && apparmor_parser --replace /etc/apparmor.d/usr.bin.pasta'
    # It stops at once, because no unit requires it.
    in_capsule systemctl start $network || fail "$(in_capsule journalctl --quiet --no-pager --output=cat --lines=5 --unit=$network)"
}

cases is_inert_on_debian browsers_run_in_the_profile network_starts_under_the_profile_of_pasta
