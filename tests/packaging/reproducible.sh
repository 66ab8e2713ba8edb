#!/bin/bash
# Builds that differ in directory, time, locale, umask and user have the same bytes: the smallest program, and all that
# happens after the compiler. source.sh builds the whole package twice.
# In a full run alone: it takes two minutes of both processors.
source "$(dirname "$0")/../tap/cases.sh"

ROOT=$(readlink -f "$(dirname "$0")/../..")
# shellcheck disable=SC2034 # for the library
PACKAGING=$ROOT/packaging SOURCE=$ROOT
for part in packaging/lib/{report,apt,source,cargo,build-root} tests/machine/lib/capsule-here; do
    # shellcheck source=/dev/null
    source "$ROOT/$part.sh"
done

export DEB_BUILD_OPTIONS=nocheck DEB_BUILD_PROFILES=pkg.archivist.noaudit
ELSEWHERE=(env TZ=Pacific/Kiritimati LC_ALL=C LANG=C sh -c 'umask 002; exec "$@"' sh)
# Not for the compiler: libfaketime never returns from the first allocation of a rustc with jemalloc, as rustup's.
LATER=(faketime '+400 days')

prepare() {
    need_root
    need_packages debhelper dpkg-dev faketime git
    # For the other user.
    chmod 711 "$work"
}

# build_program DIRECTORY [COMMAND…]: with debugging information, which names files.
build_program() {
    local dir=$1
    shift
    export_tree "$dir"
    SOURCE=$dir CARGO_TARGET_DIR=$dir/target with_cargo "$@" env "DEB_BUILD_OPTIONS=$DEB_BUILD_OPTIONS" \
        "DEB_BUILD_PROFILES=$DEB_BUILD_PROFILES" debian/rules launcher PROGRAMS='--package archivist-hook-exec'
}

a_program_has_the_same_bytes() {
    local program=target/release/archivist-hook-exec
    build_program "$work/here"
    build_program "$work/another/directory" "${ELSEWHERE[@]}"
    readelf --section-headers "$work/here/$program" | grep -q debug_line || fail "the program has no debugging information"
    cmp "$work/here/$program" "$work/another/directory/$program" || fail "archivist-hook-exec differs"
    rm -rf "$work/here" "$work/another"
}

# built DIRECTORY: the work tree with the programs, completions, manual pages and list of crates that $work/inside has.
built() {
    local dir=$1 inside=$work/inside
    export_tree "$dir"
    mkdir -p "$dir/target/quick" "$dir/debian/completions" "$dir/debian/man"
    find "$inside/usr/bin" "$inside/usr/lib/archivist" "$inside/usr/lib/systemd/system-generators" -type f -exec cp -t "$dir/target/quick" {} +
    cp "$inside"/usr/share/bash-completion/completions/archivist "$inside"/usr/share/zsh/vendor-completions/_archivist \
        "$inside"/usr/share/fish/vendor_completions.d/archivist.fish "$dir/debian/completions"
    find "$inside/usr/share/man" -type f -name '*.gz' -exec cp -t "$dir/debian/man" {} +
    gunzip "$dir"/debian/man/*.gz
    zcat -f "$inside"/usr/share/doc/archivist/archivist.cdx.json* >"$dir/debian/archivist.cdx.json"
    # What debhelper need not build.
    printf '%s\n' archivist archivist-pools archivist-fleet >"$dir/debian/debhelper-build-stamp"
}

# pack DIRECTORY USER [COMMAND…]: with the profile that compresses fast.
pack() {
    local dir=$1 user=$2
    shift 2
    built "$dir/archivist"
    chown -R "$user:$user" "$dir"
    (
        cd "$dir/archivist"
        export CARGO_TARGET_DIR=$PWD/target DEB_BUILD_OPTIONS+=' noautodbgsym' DEB_BUILD_PROFILES+=' pkg.archivist.quick'
        setpriv --reuid="$user" --regid="$user" --clear-groups "$@" dpkg-buildpackage -nc -d -b -us -uc
    )
}

the_packages_have_the_same_bytes() {
    local deb
    for deb in "$DEB" "$(pools_deb "$DEB")" "$(fleet_deb "$DEB")"; do dpkg-deb --extract "$deb" "$work/inside"; done
    pack "$work/here" 0
    pack "$work/elsewhere" 1234 "${ELSEWHERE[@]}" "${LATER[@]}"
    for deb in archivist archivist-pools archivist-fleet; do
        cmp "$work"/{here,elsewhere}/${deb}_*.deb || fail "$deb differs"
    done
}

cases a_program_has_the_same_bytes the_packages_have_the_same_bytes
