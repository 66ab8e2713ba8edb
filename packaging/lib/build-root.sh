# shellcheck shell=bash
# Build roots: a Debian with its own Rust, made once for each release and package list, and never written afterwards.

CACHE=${ARCHIVIST_CAPSULE_CACHE:-${XDG_CACHE_HOME:-${HOME-/root}/.cache}/archivist-capsule}

# The oldest release that has a new Rust: programs that are linked there run on newer releases, too. Debian keeps its
# rustc-web current, because the browsers require it.
# shellcheck disable=SC2034 # for the scripts
BUILD_RELEASE=bookworm

# A root is named RELEASE, or RELEASE:ARCHITECTURE for one whose compilers make programs for another architecture.
release_of() { echo "${1%:*}"; }
architecture_of() { [[ $1 != *:* ]] || echo "${1#*:}"; }

# Not build-essential for the package alone: it adds a C++ compiler.
build_packages() {
    local architecture
    architecture=$(architecture_of "$1")
    case $(release_of "$1") in
        bookworm) echo gcc libc6-dev make dpkg-dev debhelper python3 ca-certificates cargo-web rustc-web ;;
        *) echo build-essential debhelper python3 cargo rustc cargo-auditable lintian iproute2 faketime ;;
    esac
    [[ -z $architecture ]] || cross_packages "$1" "$architecture"
}

# qemu-user runs the programs, for completions and tests.
cross_packages() {
    local rust=rust
    [[ $(release_of "$1") != bookworm ]] || rust='rust-web'
    echo "gcc-$(dpkg-architecture -f -a "$2" -q DEB_HOST_GNU_TYPE 2>/dev/null) libc6-dev:$2 libstd-$rust-dev:$2 qemu-user"
}

# Settings of the machine that programs in the root need for the network.
ROOT_VARIABLES=(http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY)

build_root_dir() {
    local recipe
    recipe=$({ build_packages "$1"; declare -f make_build_root build_sources_for; } | sha256sum)
    echo "$CACHE/build-${1/:/-}-${recipe:0:12}"
}

# ensure_build_root ROOT: prints the directory.
ensure_build_root() {
    local dir
    dir=$(build_root_dir "$1")
    [[ -d $dir ]] || make_build_root_once "$1" "$dir" >&2
    echo "$dir"
}

# Concurrent callers wait for the first.
make_build_root_once() {
    need_root
    need_packages mmdebstrap debian-archive-keyring
    mkdir -p "$CACHE"
    (
        flock 9
        [[ -d $2 ]] || stage "build root of $1" make_build_root "$1" "$2"
    ) 9>"$2.lock" || die "could not make the build root of $1: see the messages above"
}

# In a temporary directory, so that an existing root is always complete.
make_build_root() {
    local name=$1 dir=$2 release architecture scratch line options=() sources=()
    release=$(release_of "$name")
    architecture=$(architecture_of "$name")
    scratch=$(mktemp -d "$CACHE/.build-$release.XXXXXX")
    # shellcheck disable=SC2064 # the value of now is meant
    trap "rm -rf --one-file-system '$scratch'" EXIT
    while IFS= read -r line; do options+=("--aptopt=$line"); done < <(apt_transport_settings)
    mapfile -t sources < <(build_sources_for "$release")
    [[ -z $architecture ]] || options+=("--architectures=$(dpkg --print-architecture),$architecture")
    # As for base roots.
    [[ $release != forky && $release != sid ]] || options+=('--aptopt=Acquire::Check-Valid-Until "false";')
    # Of the backports, the compiler alone.
    [[ $release != trixie ]] || options+=(--setup-hook='mkdir -p "$1/etc/apt/preferences.d" &&
        printf "Package: src:rustc src:cargo\nPin: release n=trixie-backports\nPin-Priority: 600\n" >"$1/etc/apt/preferences.d/rust"')
    # Not as --dpkgopt: mmdebstrap would then filter each essential package with Python, for 15 s.
    options+=(--setup-hook='mkdir -p "$1/etc/dpkg/dpkg.cfg.d" &&
        printf "path-exclude=/usr/share/%s/*\n" doc man locale >"$1/etc/dpkg/dpkg.cfg.d/no-documentation"')
    mmdebstrap --quiet --mode=root --variant=apt --dpkgopt=force-unsafe-io \
        --include="$(build_packages "$name" | xargs | tr ' ' ,)" \
        "${options[@]}" "$release" "$scratch/root" "${sources[@]}" || return 1
    chmod 755 "$scratch/root"
    rm -f "$scratch/root"/etc/{hostname,resolv.conf}
    mv -T "$scratch/root" "$dir"
}

# Without a Debian source on the machine (Ubuntu), mmdebstrap's default of the archive, which lacks only bookworm's Rust.
build_sources_for() {
    local release=$1 sources archive
    mapfile -t sources < <(apt_sources_for "$release")
    [[ ${#sources[@]} -gt 0 ]] || return 0
    # Unstable has neither updates nor security updates.
    [[ $release != sid ]] || sources=("${sources[0]}")
    printf '%s\n' "${sources[@]}"
    archive=$(apt_uri_of Debian)
    case $release in
        # A machine with testing or unstable may have no source of security updates.
        bookworm) [[ ${sources[*]} == *-security* ]] ||
            echo "deb ${archive%/debian*}/debian-security bookworm-security main" ;;
        trixie) echo "deb $archive trixie-backports main" ;;
    esac
}

# in_build_root ROOT [--no-network] [--bind DIR]… COMMAND…: runs the command as root in the root with fresh namespaces.
# DIR is the same directory inside; the command starts in the first. Nothing else that it writes is kept, except
# downloads of cargo.
in_build_root() {
    local root network=yes dirs=() variables=() namespaces=(--mount --pid --ipc --uts) name
    root=$(ensure_build_root "$1") || exit 1
    shift
    while [[ $1 == --* ]]; do
        case $1 in
            --no-network) network=no namespaces+=(--net); shift ;;
            --bind) dirs+=("$2"); shift 2 ;;
            *) die "in_build_root: unknown option '$1'" ;;
        esac
    done
    for name in "${ROOT_VARIABLES[@]}"; do [[ -z ${!name-} ]] || variables+=("$name=${!name}"); done
    mkdir -p "$CACHE/cargo"
    unshare "${namespaces[@]}" --fork --kill-child --propagation private \
        bash "$PACKAGING/lib/build-root-inside.sh" "$root" "$network" "$CACHE/cargo" "${#dirs[@]}" "${dirs[@]}" \
        env "${variables[@]}" "$@"
}
