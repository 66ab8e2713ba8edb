# shellcheck shell=bash
# Starting and stopping a virtual machine, and running commands in it.

# Long, for emulation on a busy machine.
VM_BOOT_SECONDS=600
VM_STOP_SECONDS=120

# vm_prepare NAME RELEASE MEMORY KEEP: creates a fresh disk, or keeps the existing one with KEEP=yes.
vm_prepare() {
    local name=$1 release=$2 memory=$3 keep=$4 state base
    base=$(ensure_vm_base "$release")
    state=$(vm_dir "$name")
    [[ $keep == yes ]] || rm -rf --one-file-system "$state"
    mkdir -p "$state"
    [[ -e $state/disk ]] || cp --sparse=always --reflink=auto "$base/disk" "$state/disk"
    # It keeps its kernel and its key.
    [[ $keep == yes && -e $state/base ]] || echo "$base" >"$state/base"
    echo "$release" >"$state/release"
    echo "$memory" >"$state/memory"
}

# Waits for the first of two events: the message of the machine that it has booted, or the exit of qemu.
vm_switch_on() {
    local name=$1 state base reader qemu first
    state=$(vm_dir "$name")
    base=$(vm_field "$name" base)
    rm -f "$state"/{ready.in,ready.out,pid,ssh,unsure,log,console}
    mkfifo "$state/ready.in" "$state/ready.out"
    qemu-img create -q -f qcow2 -b "$state/disk" -F raw "$state/unsure"
    : >"$state/log"
    free_port >"$state/port"
    vm_cgroup "$name" >"$state/cgroup"
    vm_qemu "$base" "$state" </dev/null >"$state/console" 2>&1 &
    qemu=$!
    echo "$qemu" >"$state/pid"
    read_line "$state/ready.out" "$VM_BOOT_SECONDS" >"$state/verdict" &
    reader=$!
    wait -n -p first "$reader" "$qemu" || { kill "$reader" 2>/dev/null || true; first=none; }
    [[ $first == "$reader" ]] || vm_fail_boot "$name" "it did not say that it is up within $VM_BOOT_SECONDS s"
    vm_check_verdict "$name"
    disown "$qemu"
}

# The message is running or degraded, with a carriage return.
vm_check_verdict() {
    local name=$1 verdict
    verdict=$(tr -d '\r' <"$(vm_dir "$name")/verdict")
    [[ $verdict == running ]] && return 0
    vm_enter "$name" systemctl --failed --no-pager >&2 || true
    die "the system of machine '$name' is '$verdict', not running; it was kept for inspection: 'vm shell $name'"
}

vm_fail_boot() {
    local name=$1
    tail -n 30 "$(vm_dir "$name")/console" >&2
    ! vm_is_running "$name" || vm_kill "$name"
    vm_settle "$name" all
    die "machine '$name' did not boot: $2; the lines above are from $(vm_dir "$name")/console"
}

free_port() {
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# Under systemd, this is the scope that the command was started in, see in_own_scope.
vm_cgroup() {
    local mount
    mount=$(cgroup2_mount)
    if machine_runs_systemd; then
        echo "$mount$(sed -n 's/^0:://p' /proc/self/cgroup)"
    else
        mkdir -p "$mount/archivist-vm-$1"
        echo "$mount/archivist-vm-$1"
    fi
}

# Executes qemu. The lock on file descriptor 8 ends with it. The guest can reach only this script through its network, and
# neither the machine nor the Internet. vm-disk.py decides which writes reach the disk, so qemu does not flush. Writes are not
# merged: the log adds a part to each write, and with the maximum number of parts of a call the guest would get an I/O error.
vm_qemu() {
    local base=$1 state=$2
    machine_runs_systemd || echo "$BASHPID" >"$(<"$state/cgroup")/cgroup.procs"
    exec 8>"$state/alive"
    flock 8
    exec setsid qemu-system-x86_64 -name "archivist-$(basename "$state")" -nodefaults -no-user-config -display none \
        -machine q35 -accel tcg,thread=multi -cpu max -smp 2 -m "$(<"$state/memory")" \
        -kernel "$base/vmlinuz" -initrd "$base/initrd" \
        -append "root=/dev/vda rw console=ttyS0 net.ifnames=0 psi=1 systemd.show_status=no loglevel=4" \
        -blockdev "driver=qcow2,node-name=unsure,cache.no-flush=on,file.driver=file,file.filename=$state/unsure" \
        -blockdev "driver=raw,node-name=writes,cache.no-flush=on,file.driver=file,file.filename=$state/log" \
        -blockdev driver=blklogwrites,node-name=disk,file=unsure,log=writes,log-append=off,log-super-update-interval=4096 \
        -device virtio-blk-pci,drive=disk,write-cache=on,discard=off,write-zeroes=off,request-merging=off \
        -netdev "user,id=wire,restrict=on,hostfwd=tcp:127.0.0.1:$(<"$state/port")-:22" -device virtio-net-pci,netdev=wire,romfile= \
        -device virtio-rng-pci \
        -serial stdio \
        -chardev "pipe,id=ready,path=$state/ready" -serial chardev:ready
}

# vm_enter NAME COMMAND…: returns its exit status. The first call opens a connection, which the others share.
vm_enter() {
    local name=$1 words=() word state base
    shift
    for word in "$@"; do words+=("${word@Q}"); done
    state=$(vm_dir "$name")
    base=$(<"$state/base")
    ssh -F none -q -T -i "$base/key" -p "$(<"$state/port")" -o ControlMaster=auto -o ControlPath="$state/ssh" -o ControlPersist=yes \
        -o UserKnownHostsFile="$base/known_hosts" -o HostKeyAlias=vm -o IdentitiesOnly=yes -o BatchMode=yes \
        -o ConnectTimeout=60 -o ServerAliveInterval=60 root@127.0.0.1 \
        "export LANG=C.UTF-8; ${words[*]}"
}

vm_end_connection() {
    local socket
    socket=$(vm_dir "$1")/ssh
    [[ ! -S $socket ]] || ssh -F none -q -o ControlPath="$socket" -O exit vm 2>/dev/null || true
    rm -f "$socket"
}

# Only with packages of the disk: without package lists, apt requires no network. There is no browser.
vm_install_deb() {
    local name=$1 deb=$2 inside
    inside=/var/cache/${deb##*/}
    vm_copy_in "$deb" "$name:$inside"
    vm_enter "$name" env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 \
        install --no-install-recommends --reinstall "$inside" >&2 ||
        die "apt could not install $deb in machine '$name': see its messages above"
}

vm_copy_in() {
    local source=$1 name=${2%%:*} path=${2#*:}
    if [[ -d $source ]]; then
        vm_enter "$name" mkdir -p -- "$path"
        tar -C "$source" -cf - . | vm_enter "$name" tar --no-same-owner -C "$path" -xf -
    else
        vm_enter "$name" sh -c 'cat >"$1" && chmod 644 "$1"' sh "$path" <"$source"
    fi
}

vm_copy_out() {
    local name=${1%%:*} path=${1#*:} dest=$2
    if vm_enter "$name" test -d "$path"; then
        mkdir -p "$dest"
        vm_enter "$name" tar -C "$path" -cf - . | tar -C "$dest" --no-same-owner -xf -
    else
        vm_enter "$name" cat -- "$path" >"$dest"
    fi
}

# Kills only qemu: the pid is that of the process that holds the lock.
vm_kill() {
    kill -KILL "$(vm_field "$1" pid)"
    vm_wait_ended "$1" 30 || die "qemu of machine '$1' survived SIGKILL"
}

# Like the power button. All writes are on the disk afterwards.
vm_power_off() {
    local name=$1
    vm_enter "$name" systemctl --no-block poweroff || true
    vm_end_connection "$name"
    vm_wait_ended "$name" "$VM_STOP_SECONDS" || {
        say "machine '$name' did not power off within $VM_STOP_SECONDS s, killing it"
        vm_kill "$name"
    }
    vm_settle "$name" all
}

# vm_settle NAME all | SEED: applies all writes, or a random part of them, to the disk.
vm_settle() {
    local state
    state=$(vm_dir "$1")
    python3 "$MACHINE/lib/vm-disk.py" "$state/disk" "$state/log" "$2"
    rm -f "$state/unsure" "$state/log"
    machine_runs_systemd || rmdir "$(<"$state/cgroup")" 2>/dev/null || true
}
