# shellcheck shell=bash
# The command `capsule` for tests. What it runs in a capsule is started by this shell: the script takes longer than most of
# these commands.
for machine_part in "$ROOT"/packaging/lib/report.sh "$ROOT"/tests/machine/lib/capsule-{state,use}.sh; do
    # shellcheck source=/dev/null
    source "$machine_part"
done

capsule() {
    if [[ $1 == run ]]; then
        (need_running "$2"; become "${@:2}")
    else
        "$ROOT/tests/machine/capsule" "$@"
    fi
}

# fleet_deb DEB, pools_deb DEB: prints the path of another package, which build-deb writes next to DEB.
fleet_deb() { next_to "$1" archivist-fleet; }

pools_deb() { next_to "$1" archivist-pools; }

# next_to DEB PACKAGE
next_to() {
    local name=${1##*/} deb
    deb=${1%"$name"}$2_${name#archivist_}
    [[ -f $deb ]] || die "there is no $deb: build it with packaging/build-deb, without --no-fleet"
    echo "$deb"
}

# repack DIR ADDITION DEB…: writes the packages to DIR, with an addition to their version.
repack() {
    local dir=$1 addition=$2 deb
    shift 2
    mkdir "$dir"
    for deb in "$@"; do
        dpkg-deb --raw-extract "$deb" "$dir/tree"
        sed -i "s/^Version: .*/&$addition/; s/archivist (= [^)]*/&$addition/" "$dir/tree/DEBIAN/control"
        dpkg-deb --root-owner-group -Zgzip -z1 --build "$dir/tree" "$dir/${deb##*/}" >/dev/null
        rm -rf "$dir/tree"
    done
}
