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

cases is_inert_on_debian browsers_run_in_the_profile
