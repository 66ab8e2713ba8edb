# shellcheck shell=bash
# For the tests in this directory: each is a script that sources this file first and ends with `cases NAME…`, see
# tests/tap/cases.sh.
#
# From the harness, or set by hand to run one test alone in a capsule that is up:
#   CAPSULE   name of the capsule      (tests/machine/capsule boot NAME RELEASE)
#   DEB       the package archivist    (packaging/build-deb); some tests install the others, which are next to it
source "$(dirname "${BASH_SOURCE[0]}")/../tap/cases.sh"

ROOT=$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../..
: "${CAPSULE:?name of a running capsule}" "${DEB:?path of the package}"
command -v gojq >/dev/null || bail "gojq is not installed: apt install gojq"

# shellcheck source=/dev/null
source "$ROOT/tests/machine/lib/capsule-here.sh"

in_capsule() { capsule run "$CAPSULE" "$@"; }

# journal OPTION…: what the journal has of the time since this script began. Scripts before it in the same capsule may have had
# crawls and pages of the same numbers.
journal() {
    in_capsule journalctl --sync
    in_capsule journalctl --quiet --no-pager --since="@$script_began" "$@"
}
script_began=$EPOCHREALTIME

# assert_eq EXPECTED ACTUAL WHAT
assert_eq() {
    [[ $1 == "$2" ]] || fail "$3: expected '$1', got '$2'"
}

# assert_contains TEXT PART WHAT
assert_contains() {
    [[ $1 == *"$2"* ]] || fail "$3: '$2' is not in '${1:0:4000}'"
}

# unit_property UNIT PROPERTY
unit_property() { in_capsule systemctl show --property="$2" --value -- "$1"; }

# systemctl is-system-running: no failed unit and no pending job.
assert_system_running() {
    assert_eq running "$(in_capsule systemctl is-system-running || true)" "state of the system"
    assert_nothing "failed units" in_capsule systemctl list-units --failed --plain --no-legend
}

# The last case of every script.
leaves_nothing_behind() {
    if defined clean; then clean; fi
    if defined assert_nothing_is_left; then assert_nothing_is_left; else assert_system_running; fi
}

# Capsules share the network of the machine: each release adds its number to the port of a test.
declare -A release_numbers=([bookworm]=0 [trixie]=1 [forky]=2)
# shellcheck disable=SC2034 # for the tests
release_number=${release_numbers[${RELEASE-bookworm}]}

# apt_in_capsule ARGUMENT…: runs apt-get quietly, without network, like the script of an administrator.
apt_in_capsule() {
    in_capsule env DEBIAN_FRONTEND=noninteractive apt-get -q -y -o Dpkg::Use-Pty=0 "$@"
}

# put_deb [DEB]: the package under test or another one, as a path in the capsule.
put_deb() {
    local deb=${1-$DEB} inside
    inside=/var/cache/${deb##*/}
    capsule cp "$deb" "$CAPSULE:$inside"
    echo "$inside"
}

# install_fleet, install_pools: adds another package, which most tests do without.
install_fleet() { install_deb "$(fleet_deb "$DEB")"; }

install_pools() { install_deb "$(pools_deb "$DEB")"; }

install_deb() { apt_in_capsule install --no-install-recommends "$(put_deb "$1")"; }

purge_fleet() { in_capsule dpkg --purge archivist-fleet; }

purge_pools() { in_capsule dpkg --purge archivist-pools; }
