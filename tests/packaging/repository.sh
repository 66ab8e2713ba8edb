#!/bin/bash
# Machines install and upgrade the packages from a repository that packaging/repo makes.
source "$(dirname "$0")/../capsule/lib.sh"

unit=archivist-repository-test.service
repository=$work/repository
served=/srv/repository
# A release alone, so that apt asks nothing else.
APT=(-o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts=/srv/sources)

prepare() {
    fleet=$(fleet_deb "$DEB") pools=$(pools_deb "$DEB")
    export GNUPGHOME=$work/gnupg
    mkdir -m 700 "$GNUPGHOME"
    make_key test@repository.example
}

make_key() { gpg --batch --quiet --passphrase '' --quick-generate-key "Test <$1>" ed25519 sign never; }

clean() {
    gpgconf --homedir "$work/gnupg" --kill all
    in_capsule sh -c "systemctl stop test-repository.service $unit 2>/dev/null; rm -rf $served /srv/sources /srv/old /srv/new /srv/lists" || true
    in_capsule dpkg --purge archivist archivist-pools archivist-fleet
}

# variant VERSION ARCHITECTURE [DEB]: prints the path of the package under test, or of the other one, as another one.
variant() {
    local deb=${3-$DEB} tree=$work/tree out
    out=${deb##*/}
    out=$work/${out%%_*}_$1_$2.deb
    rm -rf "$tree"
    dpkg-deb --raw-extract "$deb" "$tree"
    sed -i "s/^Version: .*/Version: $1/; s/^Architecture: .*/Architecture: $2/; s/archivist (= [^)]*/archivist (= $1/" "$tree/DEBIAN/control"
    dpkg-deb -Zgzip -z1 --root-owner-group --build "$tree" "$out" >/dev/null
    echo "$out"
}

repo() { "$ROOT/packaging/repo" "$@"; }

# The web server in the capsule reads a copy.
serve() {
    in_capsule sh -c "rm -rf $served; mkdir -p $served /srv/sources"
    tar -C "$repository" -cf - . | in_capsule tar -C $served --no-same-owner -xf -
}

start_server() {
    in_capsule systemd-run --quiet --collect --unit=test-repository --property=Type=exec \
        python3 -u -m http.server --bind 127.0.0.1 --directory $served 0
    wait_for 20 server_listens >/dev/null
    # shellcheck disable=SC2153 # from the harness
    in_capsule sh -c 'cat >/srv/sources/archivist.sources' <<END
Types: deb
URIs: $(server_listens)
Suites: $RELEASE
Components: main
Signed-By: $served/archive-key.pgp
END
}

server_listens() {
    in_capsule journalctl --quiet --no-pager --output=cat --unit=test-repository.service |
        sed -nE 's/.* port ([0-9]+) .*/http:\/\/127.0.0.1:\1/p' | tail -n 1 | grep .
}

apt_from_repository() { apt_in_capsule "${APT[@]}" "$@"; }

# version [PACKAGE]
version() { in_capsule dpkg-query --show --showformat '${Version}' "${1-archivist}"; }

installs_from_the_repository() {
    repo "$repository" bookworm,trixie,forky "$DEB" "$pools" "$fleet"
    serve
    start_server
    apt_from_repository update
    apt_from_repository install archivist
    assert_eq "$(dpkg-deb --field "$DEB" Version)" "$(version)" "installed version"
    assert_eq active "$(in_capsule systemctl is-active archivist-orchestrator.service)" "service"
    assert_eq "$(version)" "$(version archivist-pools)" "version of what archivist recommends"
    # apt fetches indexes by their hash.
    assert_eq "" "$(in_capsule journalctl --quiet --no-pager --unit=test-repository.service --grep=' 404 ' || true)" "missing files"
}

# As archivist says on a machine that lacks it.
adds_the_fleet() {
    needs installs_from_the_repository
    in_capsule test ! -e /usr/lib/archivist/archivist-fleet || fail "archivist pulls the fleet in"
    apt_from_repository install archivist-fleet
    assert_eq "$(version)" "$(version archivist-fleet)" "installed version"
}

upgrades_without_interruption() {
    needs adds_the_fleet
    local next before architecture
    next=$(dpkg-deb --field "$DEB" Version)+1
    architecture=$(dpkg --print-architecture)
    in_capsule systemd-run --quiet --unit=$unit --slice=archivist-crawl.slice sleep infinity
    before=$(unit_property $unit InvocationID)
    repo "$repository" "$RELEASE" "$(variant "$next" "$architecture")" \
        "$(variant "$next" "$architecture" "$pools")" "$(variant "$next" "$architecture" "$fleet")"
    serve
    apt_from_repository update
    apt_from_repository upgrade
    assert_eq "$next $next" "$(version) $(version archivist-fleet)" "versions after apt upgrade"
    assert_eq "$before" "$(unit_property $unit InvocationID)" "running work after the upgrade"
    in_capsule systemctl stop $unit
}

has_several_releases_and_architectures() {
    needs installs_from_the_repository
    local release
    repo "$repository" bookworm,trixie "$(variant 9 arm64)"
    for release in bookworm trixie; do
        assert_contains "$(<"$repository/dists/$release/InRelease")" "Architectures: amd64 arm64" "$release"
        assert_contains "$(<"$repository/dists/$release/main/binary-arm64/Packages")" "Version: 9" "arm64 of $release"
        [[ $(<"$repository/dists/$release/main/binary-amd64/Packages") != *arm64* ]] || fail "amd64 of $release has arm64"
    done
    assert_contains "$(<"$repository/dists/forky/InRelease")" "Architectures: amd64" "forky"
}

keeps_a_published_file() {
    needs installs_from_the_repository
    local same status=0
    same=$(variant "$(dpkg-deb --field "$DEB" Version)" "$(dpkg --print-architecture)")
    repo "$repository" trixie "$same" || status=$?
    assert_eq 1 "$status" "exit status for another file of the same version"
}

# update_with SOURCES: apt update; warnings are failures, too. It starts without lists: with them, apt requests only newer files, and
# the server finds no change within the same second.
update_with() {
    in_capsule sh -c 'rm -rf /srv/lists; mkdir -p /srv/lists/partial'
    apt_from_repository -o APT::Update::Error-Mode=any -o Dir::State::Lists=/srv/lists -o Dir::Etc::SourceParts="/srv/$1" update
}

apt_rejects_what_another_key_signed() {
    needs installs_from_the_repository
    sed 's/^Origin: .*/Origin: another/' "$repository/dists/$RELEASE/InRelease" |
        in_capsule sh -c "cat >$served/dists/$RELEASE/InRelease"
    ! update_with sources || fail "apt accepted a changed InRelease"
}

# As packaging/README.md says: sign with both keys, distribute the new one, sign with the new one.
the_key_can_be_replaced() {
    needs installs_from_the_repository
    in_capsule sh -c "mkdir -p /srv/old /srv/new; cp $served/archive-key.pgp /srv/old/key.pgp"
    in_capsule sh -c "sed s,^Signed-By:.*,'Signed-By: /srv/old/key.pgp', /srv/sources/archivist.sources >/srv/old/archivist.sources"
    make_key new@repository.example
    repo --key test@repository.example --key new@repository.example "$repository"
    serve
    update_with old || fail "apt with the old key rejects what both keys signed"
    in_capsule cp $served/archive-key.pgp /srv/new/key.pgp
    in_capsule sh -c "sed s,/srv/old,/srv/new, /srv/old/archivist.sources >/srv/new/archivist.sources"
    repo --key new@repository.example "$repository"
    serve
    update_with new || fail "apt rejects the new key"
    ! update_with old || fail "apt with the old key accepts what the new key signed"
}

cases installs_from_the_repository adds_the_fleet upgrades_without_interruption has_several_releases_and_architectures \
    keeps_a_published_file the_key_can_be_replaced apt_rejects_what_another_key_signed
