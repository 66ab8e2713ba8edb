#!/bin/bash
# In a full run alone: the source package builds without a network with the Rust of each release, and two builds that
# differ in directory, time, locale and user have the same bytes.
source "$(dirname "$0")/../tap/cases.sh"

ROOT=$(readlink -f "$(dirname "$0")/../..")
PACKAGING=$ROOT/packaging
# shellcheck disable=SC2034 # for the library
SOURCE=$ROOT
for part in report apt source cargo build-root; do
    # shellcheck source=/dev/null
    source "$PACKAGING/lib/$part.sh"
done

prepare() { need_root; }

makes_a_source_package() {
    dsc=$("$PACKAGING/build-source" "$work/source")
    keep dsc
    "$PACKAGING/build-source" "$work/again" >/dev/null
    # The tarballs do not depend on when and where they were made.
    diff -r --exclude='*.dsc' "$work/source" "$work/again" || fail "a second source package differs"
    rm -rf "$work/again"
}

# build RELEASE DIRECTORY [COMMAND…]: COMMAND runs the rest of its arguments under other circumstances.
build() {
    local release=$1 dir=$2
    shift 2
    mkdir -p "$dir"
    (cd "$dir" && dpkg-source --extract "$dsc" archivist) >&2
    chown -R "${BUILDER:-0}:${BUILDER:-0}" "$dir"
    in_build_root "$release" --no-network --bind "$dir" env HOME="$dir" DEB_BUILD_OPTIONS="parallel=$(nproc)" "$@" \
        sh -c 'cd archivist && dpkg-buildpackage -us -uc -b' >"$dir/log" 2>&1 || { tail -n 60 "$dir/log"; return 1; }
    rm -rf "$dir/archivist/target"
}

builds_on_trixie() {
    needs makes_a_source_package
    build trixie "$work/trixie"
    rm -rf "$work/trixie"
}

# The same Rust as forky, most of the time: without optimisation.
builds_on_sid() {
    needs makes_a_source_package
    build sid "$work/sid" env DEB_BUILD_PROFILES=pkg.archivist.quick DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)"
    rm -rf "$work/sid"
}

builds_on_forky() {
    needs makes_a_source_package
    build forky "$work/forky"
}

has_debugging_symbols() {
    needs builds_on_forky
    local package symbols programs
    for package in archivist archivist-pools archivist-fleet; do
        symbols=$(dpkg-deb --fsys-tarfile "$work"/forky/$package-dbgsym_*.deb | tar -tf - | grep -c '\.debug$')
        programs=$(dpkg-deb --fsys-tarfile "$work"/forky/${package}_*.deb | tar -tf - | grep -cE '^\./usr/(bin/archivist|lib/archivist/archivist-[^/]+|lib/systemd/system-generators/archivist-[^/]+)$')
        [[ $symbols -eq $programs ]] || fail "$symbols of $programs programs of $package have debugging symbols"
    done
}

says_what_is_inside() {
    needs builds_on_forky
    dpkg-deb --extract "$work"/forky/archivist_*.deb "$work/inside"
    dpkg-deb --extract "$work"/forky/archivist-pools_*.deb "$work/inside"
    dpkg-deb --extract "$work"/forky/archivist-fleet_*.deb "$work/inside"
    python3 "$ROOT/tests/packaging/inside.py" "$work/inside" "$work/forky/archivist/vendor"
}

# The binary packages and the source package.
lintian_finds_nothing() {
    needs builds_on_forky
    in_build_root forky --no-network --bind "$work" sh -c 'lintian --allow-root -EvIL +pedantic \
        --fail-on error,warning,info,pedantic,experimental forky/archivist_*.changes source/archivist_*.dsc' >"$work/lintian" 2>&1 ||
        { grep -v '^N:' "$work/lintian"; fail "lintian has findings"; }
}

is_reproducible() {
    needs builds_on_forky
    local deb
    BUILDER=1234 build forky "$work/another/directory" env TZ=Pacific/Kiritimati LC_ALL=C LANG=C \
        DEB_BUILD_OPTIONS="nocheck parallel=$(nproc)" setpriv --reuid=1234 --regid=1234 --clear-groups \
        faketime '+400 days' sh -c 'umask 002; exec "$@"' sh
    for deb in "$work"/forky/*.deb; do
        cmp "$deb" "$work/another/directory/${deb##*/}" || fail "${deb##*/} differs"
    done
}

cases makes_a_source_package builds_on_trixie builds_on_sid builds_on_forky has_debugging_symbols says_what_is_inside \
    lintian_finds_nothing is_reproducible
