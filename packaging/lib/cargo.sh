# shellcheck shell=bash
# cargo: that of the machine, or where it is missing or too old, that of a build root.

# The oldest Rust that compiles the workspace.
required_rust() { sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$SOURCE/Cargo.toml"; }

# Whether the machine has a cargo that is new enough; rustup's may be outside PATH.
machine_has_cargo() {
    local version
    PATH=$PATH:${HOME-/root}/.cargo/bin
    version=$(cd / && command cargo --version 2>/dev/null) || return 1
    version=${version#cargo }
    dpkg --compare-versions "${version%% *}" ge "$(required_rust)"
}

# Whether programs that are linked on this machine run on a Debian release.
machine_links_for() {
    local machine release
    machine=$(getconf GNU_LIBC_VERSION)
    case $1 in
        bookworm) release=2.36 ;;
        trixie) release=2.41 ;;
        *) return 0 ;;
    esac
    dpkg --compare-versions "${machine#glibc }" le "$release"
}

# run_cargo ARGUMENT…: in the work tree.
run_cargo() { with_cargo cargo "$@"; }

# with_cargo COMMAND…: a command in the work tree that calls cargo.
with_cargo() {
    local target=${CARGO_TARGET_DIR:-$SOURCE/target}
    if machine_has_cargo; then
        (cd "$SOURCE" && command "$@")
    else
        mkdir -p "$target"
        in_build_root "$BUILD_RELEASE" --bind "$SOURCE" --bind "$target" env CARGO_TARGET_DIR="$target" "$@"
    fi
}
