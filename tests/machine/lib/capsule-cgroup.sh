# shellcheck shell=bash
# The cgroup of a capsule. It exists, and the launcher is in it, before anything else happens: a manager that
# starts in the root cgroup moves every process of the machine.
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
# (see in_own_scope): the tree is systemd's, and only what it delegates is ours.
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
    # Controllers can be passed on only by a cgroup that has no process of its own.
    ! machine_runs_systemd || echo "$$" >"$cgroup/supervisor/cgroup.procs"
    echo "$cgroup"
}

# in_own_scope SCRIPT NAME ARGUMENT…: where the machine's PID 1 is systemd, the cgroup is asked of it: the same command
# again, in a scope of its own. The pid in its name: after a reboot of the capsule the old scope may be there a moment longer.
in_own_scope() {
    local script=$1 name=$2
    shift 2
    if machine_runs_systemd && [[ -z ${ARCHIVIST_CAPSULE_SCOPE-} ]]; then
        ARCHIVIST_CAPSULE_SCOPE=$name exec systemd-run --scope --quiet --collect --property=Delegate=yes \
            --unit="archivist-$script-$name-$$" "$MACHINE/$script" "$@"
    fi
}

machine_runs_systemd() { [[ -d /run/systemd/system ]]; }

# Where the controllers are on cgroup2, pass them on.
delegate_controllers() {
    local controller
    for controller in $(<"$1/cgroup.controllers"); do
        echo "+$controller" >"$1/cgroup.subtree_control" ||
            say "the capsule has no controller '$controller', ignoring"
    done
}

# The inner PID 1 is gone, and with it every process of its pid namespace: only empty directories are left.
remove_cgroup() {
    local cgroup=$1
    [[ -d $cgroup ]] || return 0
    # The machine's systemd may remove its scope at the same time.
    find "$cgroup" -depth -type d -exec rmdir {} + 2>/dev/null || [[ ! -d $cgroup ]] ||
        say "could not remove the cgroup $cgroup: processes are left in it, see its cgroup.procs"
}
