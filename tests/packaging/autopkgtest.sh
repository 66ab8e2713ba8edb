#!/bin/bash
# The tests of debian/tests, which a distribution runs with the installed package; with EXTENT=full through autopkgtest.
source "$(dirname "$0")/../capsule/lib.sh"

inside=/opt/archivist

prepare() {
    in_capsule mkdir -p $inside
    tar -C "$ROOT" -cf - debian | in_capsule tar -C $inside --no-same-owner -xf -
    deb=$(put_deb)
}

clean() {
    in_capsule rm -rf $inside
    in_capsule dpkg --purge archivist
}

run_test() { in_capsule env ARCHIVIST_DEB="$deb" timeout 300 "$inside/debian/tests/$1"; }

installs() { apt_in_capsule install "$deb"; }

archives() {
    needs installs
    run_test archive
}

survives() {
    needs installs
    run_test survival
}

purges() {
    needs installs
    run_test purge
}

# Everything through autopkgtest, which the capsule fetches from Debian.
passes_autopkgtest() {
    [[ ${EXTENT-short} == full ]] || skip "in a full run alone"
    apt_in_capsule update || skip "the capsule cannot reach a Debian mirror"
    apt_in_capsule install --no-install-recommends autopkgtest || skip "the capsule cannot install autopkgtest"
    in_capsule autopkgtest --ignore-restrictions=isolation-machine,breaks-testbed "$deb" "$inside/" -- null
}

cases installs archives survives purges passes_autopkgtest
