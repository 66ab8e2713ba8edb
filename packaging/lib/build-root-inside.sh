#!/bin/bash
# The first process of a build root, in new namespaces: build-root-inside.sh ROOT yes|no CARGO-HOME N DIR… COMMAND…
set -euo pipefail

base=$1 network=$2 cargo_home=$3 count=$4
dirs=("${@:5:count}")
shift $((4 + count))

# What is not in a bound directory is gone with the namespace. An empty directory, which the overlay does not show.
scratch=$base/mnt
mount -t tmpfs -o mode=755 tmpfs "$scratch"
mkdir "$scratch"/{upper,work,root}
root=$scratch/root

bind() {
    mkdir -p "$root$2"
    mount --bind "$1" "$root$2"
}

mount -t overlay -o "lowerdir=$base,upperdir=$scratch/upper,workdir=$scratch/work" archivist-build "$root"
mount -t proc -o nosuid,noexec,nodev proc "$root/proc"
mount -t tmpfs -o mode=755,nosuid,noexec tmpfs "$root/dev"
for device in null zero full random urandom tty; do
    : >"$root/dev/$device"
    mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir -p "$root/dev/shm"
mount -t tmpfs -o mode=1777,nosuid,nodev tmpfs "$root/dev/shm"
ln -s /proc/self/fd "$root/dev/fd"
for directory in "${dirs[@]}"; do bind "$directory" "$directory"; done
bind "$cargo_home" /var/cache/cargo

if [[ $network == yes ]]; then
    cat /etc/resolv.conf >"$root/etc/resolv.conf" 2>/dev/null || true
    cat /etc/hosts >"$root/etc/hosts" 2>/dev/null || true
    # The certificates that the machine trusts, and the mirror that its cargo uses.
    [[ ! -d /etc/ssl/certs ]] || mount --rbind /etc/ssl "$root/etc/ssl"
    [[ ! -d /usr/local/share/ca-certificates ]] || bind /usr/local/share/ca-certificates /usr/local/share/ca-certificates
    rm -f "$cargo_home/config.toml"
    [[ ! -f ${HOME-/root}/.cargo/config.toml ]] || cp "${HOME-/root}/.cargo/config.toml" "$cargo_home"
else
    chroot "$root" ip link set lo up
fi

exec chroot "$root" env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
    CARGO_HOME=/var/cache/cargo TERM="${TERM:-dumb}" sh -c 'cd "$1" && shift && exec "$@"' sh "${dirs[0]:-/}" "$@"
