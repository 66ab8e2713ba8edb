# shellcheck shell=bash
# The base of a virtual machine: a disk with Debian, its kernel, and an ssh key for root. Created once for each release
# and recipe, then read-only.

# A system that boots from a disk, the dependencies of the package, and programs for tests. No browser, which is too slow
# under emulation.
VM_PACKAGES=(
    systemd systemd-sysv dbus dbus-user-session libpam-systemd udev kmod
    linux-image-cloud-amd64 initramfs-tools e2fsprogs openssh-server
    ca-certificates passwd procps python3 wget curl apparmor
)

# Units that would only delay the boot.
VM_MASKED_UNITS=(
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer man-db.timer
    e2scrub_reap.service systemd-networkd-wait-online.service
)
VM_MASKED_GENERATORS=(systemd-getty-generator systemd-ssh-generator systemd-gpt-auto-generator)

# A sparse file: it uses only the space that is written.
VM_DISK=6G

# Programs of the machine.
VM_NEEDS=(qemu-system-x86 qemu-utils openssh-client e2fsprogs python3)

vm_base_dir() {
    local recipe
    recipe=$(sha256sum <"$MACHINE/lib/vm-base.sh")
    echo "$CACHE/$1-vm-${recipe:0:12}"
}

# Prints the directory with disk, vmlinuz, initrd, key and known_hosts.
ensure_vm_base() {
    local release=$1 dir
    check_release "$release"
    dir=$(vm_base_dir "$release")
    made_once "$dir" make_vm_base "$release" "$dir"
    echo "$dir"
}

make_vm_base() {
    local release=$1 dir=$2 scratch
    need_packages mmdebstrap debian-archive-keyring "${VM_NEEDS[@]}"
    scratch=$(mktemp -d "$CACHE/.$release-vm.XXXXXX")
    # shellcheck disable=SC2064 # the value of now is meant
    trap "rm -rf --one-file-system '$scratch'" EXIT
    say "making the disk of a machine with $release (once, about 1 GB in $CACHE)"
    mkdir "$scratch/base"
    # shellcheck disable=SC2034 # for run_mmdebstrap
    MMDEBSTRAP_OPTIONS=(--setup-hook="mkdir -p \"\$1/etc/initramfs-tools/conf.d\" \"\$1/usr/share/initramfs-tools/modules.d\" &&
        echo MODULES=list >\"\$1/etc/initramfs-tools/conf.d/vm\" &&
        printf '%s\\n' virtio_pci virtio_blk ext4 >\"\$1/usr/share/initramfs-tools/modules.d/vm\"")
    run_mmdebstrap "$release" "$scratch/root" "${VM_PACKAGES[@]}" >&2
    finish_vm_base "$scratch/root" "$scratch/base"
    mke2fs -q -t ext4 -L root -d "$scratch/root" "$scratch/base/disk" $VM_DISK >&2
    mv -T "$scratch/base" "$dir"
}

finish_vm_base() {
    local root=$1 base=$2 unit
    chmod 755 "$root"
    rm -f "$root/etc/machine-id" "$root/etc/resolv.conf"
    : >"$root/etc/machine-id"
    for unit in "${VM_MASKED_UNITS[@]}"; do ln -sfn /dev/null "$root/etc/systemd/system/$unit"; done
    # The kernel command line has the root device, so nothing waits for udev to find it.
    rm -f "$root/etc/fstab"
    printf '[Match]\nName=eth0\n[Network]\nAddress=10.0.2.15/24\n' >"$root/etc/systemd/network/vm.network"
    vm_ready_unit >"$root/etc/systemd/system/vm-ready.service"
    for unit in /etc/systemd/system/vm-ready.service /usr/lib/systemd/system/systemd-networkd.service; do
        ln -sfn "$unit" "$root/etc/systemd/system/multi-user.target.wants/${unit##*/}"
    done
    mkdir -p "$root/etc/systemd/system-generators"
    for unit in "${VM_MASKED_GENERATORS[@]}"; do ln -sfn /dev/null "$root/etc/systemd/system-generators/$unit"; done
    cp "$root"/boot/vmlinuz-* "$base/vmlinuz"
    cp "$root"/boot/initrd.img-* "$base/initrd"
    ssh-keygen -q -t ed25519 -N '' -C 'archivist test machine' -f "$base/key"
    install -D -m 600 "$base/key.pub" "$root/root/.ssh/authorized_keys"
    sed 's/^/vm /' "$root/etc/ssh/ssh_host_ed25519_key.pub" >"$base/known_hosts"
}

# Prints the state of the boot to the second serial line. Does not wait until all jobs have ended, because an orchestrator
# with work at boot continuously creates new jobs.
vm_ready_unit() {
    cat <<'END'
[Unit]
Description=Word to the machine outside that this one is up
After=ssh.service systemd-networkd.service archivist-orchestrator.service

[Service]
Type=exec
ExecStart=/bin/sh -c 'systemctl is-system-running | sed s/starting/running/ >/dev/ttyS1'

[Install]
WantedBy=multi-user.target
END
}
