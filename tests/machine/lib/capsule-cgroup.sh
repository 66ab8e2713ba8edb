# shellcheck shell=bash
# The cgroup of a capsule. It exists, and the launcher is in it, before anything else happens: a service manager that
# starts in the root cgroup would move every process of the machine.
#
#   …/archivist-capsule-NAME (under a systemd: archivist-capsule-NAME-PID.scope)
#   ├─ supervisor     the process that waits for the inner PID 1
#   └─ payload        root of the capsule's cgroup namespace

cgroup2_mount() {
    local mount
    mount=$(findmnt -n -t cgroup2 -o TARGET | head -n 1)
    if [[ -z $mount ]]; then
        mount=$CACHE/cgroup2
        mkdir -p "$mount"
        mount -t cgroup2 cgroup2 "$mount" || die "no cgroup2 hierarchy, and mounting one on $mount failed"
    fi
    echo "$mount"
}

# Prints the directory of the new cgroup. Under a systemd the calling process must be in a scope with Delegate=yes
# (see in_own_scope), because systemd owns the tree and delegates only parts of it.
make_cgroup() {
    local name=$1 mount own cgroup
    mount=$(cgroup2_mount)
    if machine_runs_systemd; then
        own=$(sed -n 's/^0:://p' /proc/self/cgroup)
        cgroup=$mount$own
    else
        cgroup=$mount/archivist-capsule-$name
    fi
    mkdir -p "$cgroup/supervisor" "$cgroup/payload"
    # Only a cgroup without processes of its own can enable controllers for its children.
    ! machine_runs_systemd || echo "$$" >"$cgroup/supervisor/cgroup.procs"
    echo "$cgroup"
}

# in_own_scope SCRIPT NAME ARGUMENT…: if PID 1 of the machine is systemd, runs the same command again in its own
# scope. The name of the scope has the pid, because after a reboot of the capsule the old scope may still exist for a moment.
in_own_scope() {
    local script=$1 name=$2
    shift 2
    if machine_runs_systemd && [[ -z ${ARCHIVIST_CAPSULE_SCOPE-} ]]; then
        ARCHIVIST_CAPSULE_SCOPE=$name exec systemd-run --scope --quiet --collect --property=Delegate=yes \
            --unit="archivist-$script-$name-$$" "$MACHINE/$script" "$@"
    fi
}

machine_runs_systemd() { [[ -d /run/systemd/system ]]; }

# Enables the available controllers of cgroup2.
delegate_controllers() {
    local controller
    for controller in $(<"$1/cgroup.controllers"); do
        echo "+$controller" >"$1/cgroup.subtree_control" ||
            say "the capsule has no controller '$controller', ignoring"
    done
}

# The inner PID 1 has ended, and with it all processes of its pid namespace: only empty directories remain.
remove_cgroup() {
    local cgroup=$1
    [[ -d $cgroup ]] || return 0
    # The machine's systemd may remove its scope at the same time.
    find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || [[ ! -d $cgroup ]] ||
        say "could not remove the cgroup $cgroup: it still has processes, see its cgroup.procs"
}
