# shellcheck shell=bash
# apt of the machine: its sources, and missing packages.

APT_LOCK=/run/lock/archivist-apt.lock

# A package is installed if dpkg has configured it; alternatives are written a|b.
package_is_installed() {
    local name state
    for name in ${1//|/ }; do
        state=$(dpkg-query -W -f '${db:Status-Status}' "$name" 2>/dev/null) || state=
        [[ $state == installed ]] && return 0
    done
    return 1
}

apt_get() {
    DEBIAN_FRONTEND=noninteractive apt-get -q -y -o DPkg::Lock::Timeout=600 -o Dpkg::Use-Pty=0 "$@"
}

# Retries after an update: another `apt-get update` may have emptied the package cache during the download (container
# images have such a hook), and an old package list may name versions that the mirror no longer has.
apt_install() {
    apt_get install --no-install-recommends "$@" && return 0
    say "apt could not install: $*; updating the package lists and trying again"
    apt_get update && apt_get install --no-install-recommends "$@"
}

# missing_packages PACKAGE…: prints those that are not installed, one per line; of alternatives, the first.
missing_packages() {
    local package
    for package in "$@"; do
        package_is_installed "$package" || echo "${package%%|*}"
    done
}

# need_packages PACKAGE…: installs missing packages; changes nothing if all are installed.
need_packages() {
    local missing
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -eq 0 ]] && return 0
    [[ $(id -u) -eq 0 ]] || die "missing Debian packages: ${missing[*]}; install them, or run this as root"
    install_missing "$@" >&2 9>"$APT_LOCK" || die "could not install ${missing[*]} with apt: see its messages above"
}

# Under a lock, and after a second check: another process may have installed them while this one waited.
install_missing() {
    local missing
    flock 9
    mapfile -t missing < <(missing_packages "$@")
    [[ ${#missing[@]} -gt 0 ]] || return 0
    say "installing ${missing[*]}"
    apt_lists_are_there || apt_get update || return 1
    apt_install "${missing[@]}"
}

apt_lists_are_there() {
    [[ -n $(apt-get indextargets --format '$(FILENAME)' 'Identifier: Packages' 2>/dev/null | xargs -r ls 2>/dev/null) ]]
}

# Prints the one-line sources for a Debian release, from the mirror that the machine uses for Debian.
# Prints nothing on a machine without a Debian source (Ubuntu); mmdebstrap then uses its default.
apt_sources_for() {
    local release=$1 archive security
    archive=$(apt_uri_of Debian)
    security=$(apt_uri_of Debian-Security)
    [[ -n $archive ]] || return 0
    echo "deb $archive $release main"
    echo "deb $archive $release-updates main"
    [[ -z $security ]] || echo "deb $security $release-security main"
}

apt_uri_of() {
    apt-get indextargets --format '$(REPO_URI)' 'Identifier: Packages' 'Origin: Debian' "Label: $1" 2>/dev/null |
        sort -u | head -n 1
}

# Prints proxies, certificates and similar settings of the machine, one apt.conf line each.
apt_transport_settings() {
    apt-config dump --format '%F "%v";%n' Acquire::http Acquire::https Acquire::Check-Valid-Until Acquire::Check-Date
}
