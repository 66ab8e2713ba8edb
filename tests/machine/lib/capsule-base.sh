# shellcheck shell=bash
# Base roots: created once for each release and package list, then read-only.

RELEASES=(bookworm trixie forky)

# A bootable system with user managers; the packages that archivist recommends, so that its installation requires
# no network; certutil for authorities of the machine; fonts for screenshots; python3 for the test site.
BASE_PACKAGES=(
    systemd systemd-sysv dbus dbus-user-session libpam-systemd
    bsdutils ca-certificates mount passwd procps python3
    wget curl chromium fonts-dejavu-core
    iproute2 passt libnss3-tools poppler-utils
)

# Units that are useless or fail in a container. Without this, the boot on trixie is "degraded".
MASKED_UNITS=(
    proc-sys-fs-binfmt_misc.automount systemd-modules-load.service systemd-sysctl.service systemd-udevd.service
    sys-kernel-debug.mount sys-kernel-tracing.mount
    apt-daily.timer apt-daily-upgrade.timer dpkg-db-backup.timer e2scrub_all.timer fstrim.timer
)

# Additional packages, for other kinds of root.
MMDEBSTRAP_OPTIONS=()

check_release() {
    local known
    for known in "${RELEASES[@]}"; do
        [[ $1 == "$known" ]] && return 0
    done
    die_usage "unknown release '$1': choose one of ${RELEASES[*]}"
}

base_dir() {
    local recipe
    recipe=$(printf '%s\n' "${BASE_PACKAGES[@]}" "${MASKED_UNITS[@]}" | sha256sum)
    echo "$CACHE/$1-${recipe:0:12}"
}

# Creates the base of a release if necessary, and prints its path.
ensure_base() {
    local release=$1 dir
    check_release "$release"
    dir=$(base_dir "$release")
    made_once "$dir" make_base "$release" "$dir"
    echo "$dir"
}

# made_once DIR COMMAND…: runs the command if the directory does not exist. Concurrent callers wait for the first.
made_once() {
    local dir=$1
    shift
    [[ ! -d $dir ]] || return 0
    need_root
    mkdir -p "$CACHE"
    (
        flock 9
        [[ -d $dir ]] || "$@"
    ) 9>"$dir.lock" || die "could not make $dir: see the messages above"
}

# Built in a temporary directory, so that an existing base is always complete.
make_base() {
    local release=$1 dir=$2 scratch
    need_packages mmdebstrap debian-archive-keyring
    scratch=$(mktemp -d "$CACHE/.$release.XXXXXX")
    # shellcheck disable=SC2064 # the value of now is meant
    trap "rm -rf --one-file-system '$scratch'" EXIT
    say "making the base root of $release (once, about 1 GB in $CACHE)"
    run_mmdebstrap "$release" "$scratch/root" "${BASE_PACKAGES[@]}" >&2
    finish_base "$scratch/root"
    mv -T "$scratch/root" "$dir"
}

# run_mmdebstrap RELEASE ROOT PACKAGE…
run_mmdebstrap() {
    local release=$1 root=$2 line options=() sources=()
    shift 2
    while IFS= read -r line; do options+=("--aptopt=$line"); done < <(apt_transport_settings)
    # Testing has Release files of a week's validity, and a mirror that is a snapshot serves an older one.
    [[ $release != forky ]] || options+=('--aptopt=Acquire::Check-Valid-Until "false";')
    mapfile -t sources < <(apt_sources_for "$release")
    # force-unsafe-io: after a power cut, an incomplete base has not been renamed to its final name.
    mmdebstrap --quiet --mode=root --variant=apt --dpkgopt=force-unsafe-io \
        --include="$(IFS=,; echo "$*")" \
        "${options[@]}" "${MMDEBSTRAP_OPTIONS[@]}" "$release" "$root" "${sources[@]}"
}

finish_base() {
    local root=$1 unit
    chmod 755 "$root"
    # Each boot writes its own file.
    rm -f "$root/etc/machine-id" "$root/etc/hostname" "$root/etc/resolv.conf"
    for unit in "${MASKED_UNITS[@]}"; do
        ln -sfn /dev/null "$root/etc/systemd/system/$unit"
    done
}
