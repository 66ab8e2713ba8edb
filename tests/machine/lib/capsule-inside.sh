#!/bin/bash
# The first process of a capsule: prepares the root and executes systemd. capsule-boot.sh starts it in new pid, mount,
# cgroup, uts and ipc namespaces.
set -euo pipefail

name=$1 base=$2 state=$3 notify_socket=$4
root=$state/root

# The launcher moves the parent process out of this cgroup, then continues this script. /proc is still that of the
# machine and has the pid of this process on the machine.
report_and_wait() {
    local pid _
    read -r pid _ </proc/self/stat
    echo "$pid" >"$state/ready"
    read -r _ <"$state/go"
}

mount_root() {
    mkdir -p "$state/upper" "$state/work" "$root"
    mount -t overlay -o "lowerdir=$base,upperdir=$state/upper,workdir=$state/work" archivist-capsule "$root"
}

mount_kernel_filesystems() {
    mount -t proc -o nosuid,noexec,nodev proc "$root/proc"
    mount -t sysfs -o ro,nosuid,noexec,nodev sysfs "$root/sys"
    mount -t cgroup2 -o nosuid,noexec,nodev cgroup2 "$root/sys/fs/cgroup"
    mount -t tmpfs -o mode=755,nosuid,nodev tmpfs "$root/run"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/tmp"
    # A booting PID 1 raises limits in /proc/sys, which belong to the machine, so this is mounted over it. It is unmounted
    # after the boot: with an incomplete /proc, the kernel refuses to mount /proc in user namespaces.
    mount --bind "$root/proc/sys" "$root/proc/sys"
    mount -o remount,bind,ro "$root/proc/sys"
}

mount_dev() {
    local dev=$root/dev device
    mount -t tmpfs -o mode=755,nosuid,noexec tmpfs "$dev"
    mkdir "$dev/net"
    for device in "null 1 3" "zero 1 5" "full 1 7" "random 1 8" "urandom 1 9" "tty 5 0" "fuse 10 229" "net/tun 10 200"; do
        # shellcheck disable=SC2086 # three words
        set -- $device
        mknod -m 666 "$dev/$1" c "$2" "$3"
    done
    mkdir "$dev/pts" "$dev/shm"
    mount -t devpts -o newinstance,ptmxmode=0666,mode=620,gid=5,nosuid,noexec devpts "$dev/pts"
    mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$dev/shm"
    ln -s pts/ptmx "$dev/ptmx"
    ln -s /proc/self/fd "$dev/fd"
    ln -s fd/0 "$dev/stdin"
    ln -s fd/1 "$dev/stdout"
    ln -s fd/2 "$dev/stderr"
}

# binds: one HOSTDIR:DIR per line.
mount_binds() {
    local bind
    while IFS= read -r bind; do
        mkdir -p "$root/${bind#*:}"
        mount --rbind "${bind%%:*}" "$root/${bind#*:}"
    done <"$state/binds"
}

# A capsule that uses the network of the machine uses its resolver and hosts file, too.
write_identity() {
    if [[ -n $(<"$state/network") ]]; then
        [[ -e $root/etc/hosts ]] || echo "127.0.0.1 localhost" >"$root/etc/hosts"
    else
        cat /etc/resolv.conf >"$root/etc/resolv.conf" 2>/dev/null || true
        cat /etc/hosts >"$root/etc/hosts" 2>/dev/null || true
    fi
    grep -qw "$name" "$root/etc/hosts" || echo "127.0.1.1 $name" >>"$root/etc/hosts"
    echo "$name" >"$root/etc/hostname"
    hostname "$name"
    # A reboot keeps the machine id. The first boot gets one, because systemd would ask first-boot questions otherwise.
    [[ -s $root/etc/machine-id ]] || tr -d - </proc/sys/kernel/random/uuid >"$root/etc/machine-id"
}

# pivot_root, not chroot: in a chroot the kernel refuses user namespaces. Rshared, because systemd expects this of its
# container manager, and credentials and other late mounts reach units through it.
enter_root() {
    cd "$root"
    pivot_root . .
    umount -l .
    cd /
    mount --make-rshared /
}

report_and_wait
mount_root
mount_kernel_filesystems
mount_dev
mount_binds
write_identity
enter_root
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 container=archivist-capsule "NOTIFY_SOCKET=$notify_socket" \
    /lib/systemd/systemd --system --show-status=no
