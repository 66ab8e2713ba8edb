#!/bin/bash
# In a full run alone: the packages for arm64, which Debian's cross compilers make, under qemu-user.
source "$(dirname "$0")/../tap/cases.sh"

ROOT=$(readlink -f "$(dirname "$0")/../..")
PACKAGING=$ROOT/packaging
# shellcheck disable=SC2034 # for the library
SOURCE=$ROOT
for part in report apt source cargo build-root; do
    # shellcheck source=/dev/null
    source "$PACKAGING/lib/$part.sh"
done

ARM_RELEASE=trixie
TRIPLE=aarch64-unknown-linux-gnu
# Decisions, and crates that call the kernel.
CRATES=(archivist-core archivist-plugin archivist-hook-exec)
# What the package depends on; its other dependencies come with systemd.
ARM_PACKAGES=(systemd systemd-sysv dbus libseccomp2 ca-certificates)
# Random inputs of a property: qemu-user is ten times slower than a processor.
PROPTEST_CASES=32
BINFMT=/proc/sys/fs/binfmt_misc
HANDLER=archivist-test-arm64

prepare() { need_root; }

clean() {
    [[ ! -e $BINFMT/$HANDLER ]] || echo -1 >$BINFMT/$HANDLER
    [[ ! -e $work/mounted ]] || umount $BINFMT
    rm -rf --one-file-system "$work/root" "$work/mounted"
}

leaves_nothing_behind() { clean; }

builds_the_packages() {
    local debs
    debs=$("$PACKAGING/build-deb" --quick --arch arm64 "$work")
    deb=${debs%%$'\n'*} fleet=${debs##*$'\n'}
    keep deb fleet
    [[ $(dpkg-deb --field "$deb" Architecture) == arm64 ]] || fail "$deb is for $(dpkg-deb --field "$deb" Architecture)"
    [[ $(dpkg-deb --field "$deb" Depends) == *libc6* ]] || fail "the C library is not among the dependencies"
    dpkg-deb --extract "$deb" "$work/inside"
    dpkg-deb --extract "$fleet" "$work/inside"
    local program machine
    for program in usr/bin/archivist usr/lib/archivist/archivist-{orchestrator,hook-exec,fleet,store}; do
        machine=$(od -An -tu2 -j18 -N2 "$work/inside/$program")
        [[ $machine -eq 183 ]] || fail "$program is for machine $machine of elf.h, not for EM_AARCH64"
    done
    grep -q doctor "$work/inside/usr/share/bash-completion/completions/archivist" || fail "the completions are empty"
}

passes_the_tests_of_crates() {
    register_qemu
    local target=${CARGO_TARGET_DIR:-$ROOT/target} words=() crate
    for crate in "${CRATES[@]}"; do words+=(--package "$crate"); done
    mkdir -p "$target"
    in_build_root "$BUILD_RELEASE:arm64" --bind "$ROOT" --bind "$target" env CARGO_TARGET_DIR="$target/deb/root" \
        CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
        PROPTEST_CASES=$PROPTEST_CASES cargo test --locked --target $TRIPLE "${words[@]}" | tee "$work/tests"
    figure "$(awk '/^test result: ok/ { passed += $4 } END { print passed }' "$work/tests") tests"
}

# A name that the architecture lacks would be left out of the filter, silently.
has_every_system_call_of_the_filters() {
    need_packages seccomp
    local name number names
    mapfile -t names < <(grep -rhoP '^SystemCallFilter=~?\K.*' "$ROOT/units" | tr ' ' '\n' | grep -v '^@' | sort -u)
    [[ ${#names[@]} -gt 5 ]] || fail "found ${#names[@]} names"
    for name in "${names[@]}"; do
        number=$(scmp_sys_resolver -a aarch64 "$name")
        [[ $number -ge 0 ]] || fail "arm64 has no system call '$name'"
    done
    figure "${#names[@]} names"
}

# The kernel executes programs of the root with qemu. The handler of the machine, if it has one, does the same.
register_qemu() {
    need_packages 'qemu-user-static|qemu-user'
    if [[ ! -e $BINFMT/register ]]; then
        mount -t binfmt_misc binfmt_misc $BINFMT || skip "the kernel has no binfmt_misc"
        touch "$work/mounted"
    fi
    [[ -e $BINFMT/qemu-aarch64 || -e $BINFMT/$HANDLER ]] ||
        printf '%s' ":$HANDLER:M::$(elf_header '\x02\x00\xb7\x00'):$(elf_mask):$(qemu_of_machine):F" >$BINFMT/register
}

# Little endian, 64 bits; executables and shared objects.
elf_header() { printf '%s' '\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00' "$1"; }
elf_mask() { printf '%s' '\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'; }

qemu_of_machine() { command -v qemu-aarch64-static || command -v qemu-aarch64; }

makes_a_root() {
    needs builds_the_packages
    register_qemu
    need_packages mmdebstrap arch-test debian-archive-keyring
    local line options=() sources=()
    while IFS= read -r line; do options+=("--aptopt=$line"); done < <(apt_transport_settings)
    mapfile -t sources < <(apt_sources_for $ARM_RELEASE)
    mmdebstrap --quiet --mode=root --variant=apt --architectures=arm64 --dpkgopt=force-unsafe-io \
        --include="$(IFS=,; echo "${ARM_PACKAGES[*]}")" "${options[@]}" $ARM_RELEASE "$work/root" "${sources[@]}"
}

in_root() { chroot "$work/root" env LANG=C.UTF-8 "$@"; }

installs_and_runs() {
    needs makes_a_root
    local status=0
    cp "$deb" "$work/root/archivist.deb"
    cp "$fleet" "$work/root/archivist-fleet.deb"
    in_root apt-get -q -y install --no-install-recommends /archivist.deb /archivist-fleet.deb
    [[ $(in_root archivist --version) == archivist\ * ]] || fail "--version prints '$(in_root archivist --version)'"
    # No systemd is running there, which doctor reports.
    in_root archivist doctor >"$work/doctor" 2>&1 || status=$?
    cat "$work/doctor"
    [[ $status -eq 1 ]] || fail "doctor ends with status $status"
    grep -q systemd "$work/doctor" || fail "doctor does not say that systemd is not running"
}

verifies_the_units() {
    needs installs_and_runs
    # The shell of the root, because the machine has no such files.
    in_root sh -c 'systemd-analyze verify --man=no /usr/lib/systemd/system/archivist-*.service' >"$work/verify" 2>&1 || true
    cat "$work/verify"
    ! grep -E 'Unknown|Failed to (parse|assign|load)|[Ii]nvalid' "$work/verify" || fail "systemd of arm64 rejects lines of the units"
}

cases builds_the_packages passes_the_tests_of_crates has_every_system_call_of_the_filters makes_a_root installs_and_runs \
    verifies_the_units
