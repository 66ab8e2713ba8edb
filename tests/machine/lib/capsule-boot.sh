# shellcheck shell=bash
# From a base to a running system.

BOOT_SECONDS=120

# boot_capsule NAME RELEASE [DEB…]
boot_capsule() {
    local name=$1 release=$2 base state
    shift 2
    # Debian testing has pivot_root in a package of its own since util-linux 2.42, and a minimal system has neither of these.
    command -v mount >/dev/null || need_packages mount
    command -v pivot_root >/dev/null || need_packages util-linux-extra
    base=$(ensure_base "$release")
    state=$(state_dir "$name")
    start_capsule "$name" "$base" "$state"
    wait_until_running "$name"
    # After the boot, see capsule-inside.sh. Lazily, because the journal has a file of it open.
    enter "$name" umount --lazy /proc/sys
    [[ $# -eq 0 ]] || install_debs "$name" "$@"
}

# A fresh state directory: deletes the files of an earlier capsule of this name, except with --keep.
prepare_state() {
    local name=$1 release=$2 keep=$3 network=$4 clock=$5 state
    shift 5
    state=$(state_dir "$name")
    [[ $keep == yes ]] || rm -rf --one-file-system "$state"
    mkdir -p "$state"
    rm -f "$state"/{ready,go,pid,cgroup,log}
    mkfifo "$state/ready" "$state/go"
    echo "$release" >"$state/release"
    echo "$network" >"$state/network"
    echo "$clock" >"$state/clock"
    printf '%s\n' "$@" | sed '/^$/d' >"$state/binds"
}

# Waits for the first of two events: the notification of systemd that it has booted, or the exit of the launcher.
start_capsule() {
    local name=$1 base=$2 state=$3 socket="@archivist-capsule-$1-$$" cgroup net launcher listener pid first
    cgroup=$(make_cgroup "$name")
    echo "$cgroup" >"$state/cgroup"
    mapfile -t net < <(in_network "$state")
    listen_ready "$socket" "$BOOT_SECONDS" "${net[@]}" &
    listener=$!
    launch "$name" "$base" "$state" "$cgroup" "$socket" </dev/null >"$state/log" 2>&1 &
    launcher=$!
    # Without a pid, only the launcher must be killed; its child ends with it.
    pid=$(read_line "$state/ready" 30) || { kill "$launcher" "$listener" || true; fail_boot "$name" "no new namespaces"; }
    echo "$pid" >"$state/pid"
    echo "$launcher" >"$cgroup/supervisor/cgroup.procs"
    delegate_controllers "$cgroup"
    echo go >"$state/go"
    wait -n -p first "$listener" "$launcher" || { kill "$listener" 2>/dev/null || true; first=none; }
    [[ $first == "$listener" ]] || fail_boot "$name" "systemd did not say that it is ready"
    disown "$launcher"
}

# Enters the cgroup first. The lock on file descriptor 8 is held by the unshare process, which
# ends after the inner PID 1; the inner processes must not inherit it.
launch() {
    local name=$1 base=$2 state=$3 cgroup=$4 socket=$5 net clock time=()
    mapfile -t net < <(in_network "$state")
    clock=$(<"$state/clock")
    [[ -z $clock ]] || time=(--time --monotonic "$clock" --boottime "$clock")
    echo "$BASHPID" >"$cgroup/payload/cgroup.procs"
    exec 8>"$state/alive"
    flock 8
    exec setsid "${net[@]}" unshare --fork --kill-child --pid --mount --cgroup --uts --ipc "${time[@]}" --propagation private \
        bash -c 'exec 8>&-; exec bash "$@"' bash "$MACHINE/lib/capsule-inside.sh" "$name" "$base" "$state" "$socket"
}

# Prints the command, one word on each line, with which a process gets the network of the capsule: none if it is the machine's.
in_network() {
    local network
    network=$(<"$1/network")
    [[ -z $network ]] || printf '%s\n' nsenter "--net=$network"
}

# listen_ready SOCKET SECONDS [COMMAND…]: waits on a datagram socket for READY=1, which PID 1 in a container sends when it has
# booted. An abstract socket requires no path that both sides can see, but the same network. Perl, because every Debian has it
# and bash has no sockets.
listen_ready() {
    local socket=$1 seconds=$2
    shift 2
    exec "$@" perl -MSocket -e '
        my ($name, $seconds) = @ARGV;
        socket(my $socket, PF_UNIX, SOCK_DGRAM, 0) or die "socket: $!";
        bind($socket, pack_sockaddr_un("\0" . substr($name, 1))) or die "bind $name: $!";
        alarm $seconds;
        while (defined recv($socket, my $message, 4096, 0)) { exit 0 if $message =~ /^READY=1$/m }
        exit 1' "$socket" "$seconds"
}

# read_line FIFO SECONDS. Opens the FIFO for reading and writing, so that only the read blocks, with a timeout.
read_line() {
    local line
    read -r -t "$2" line <>"$1" && echo "$line"
}

wait_until_running() {
    local name=$1 verdict
    verdict=$(enter "$name" timeout "$BOOT_SECONDS" systemctl is-system-running --wait) || true
    [[ $verdict == running ]] && return 0
    enter "$name" systemctl --failed --no-pager >&2 || true
    die "the system in capsule '$name' is '${verdict:-silent}', not running; it was kept for inspection:" \
        "'capsule shell $name', then 'capsule stop $name'"
}

fail_boot() {
    local name=$1
    tail -n 20 "$(state_dir "$name")/log" >&2
    [[ ! -e $(state_dir "$name")/pid ]] || end_inner_init "$name"
    die "capsule '$name' did not boot: $2; the lines above are from $(state_dir "$name")/log"
}

# Only with packages of the base: without package lists, apt requires no network.
install_debs() {
    local name=$1 deb inside=()
    shift
    for deb in "$@"; do
        inside+=("/var/cache/${deb##*/}")
        enter "$name" sh -c 'cat >"$1" && chmod 644 "$1"' sh "${inside[-1]}" <"$deb"
    done
    enter "$name" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
        install --reinstall "${inside[@]}" >&2 ||
        die "apt could not install $* in capsule '$name': see its messages above"
}
