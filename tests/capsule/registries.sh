# shellcheck shell=bash
# For tests that fetch programs from PyPI, npm and Debian: skipped where these cannot be reached.

# How the machine's tools know where to fetch from; the capsule's get the same.
SETTINGS=(PIP_INDEX_URL PIP_EXTRA_INDEX_URL npm_config_registry HTTP_PROXY HTTPS_PROXY NO_PROXY http_proxy https_proxy no_proxy)
UNREACHABLE='Temporary failure|Could not resolve|Failed to fetch|Connection refused|NewConnectionError|ConnectTimeout|ProxyError'
UNREACHABLE+='|SSLError|CERTIFICATE_VERIFY_FAILED|No matching distribution|ENOTFOUND|ECONNREFUSED|ECONNRESET|ETIMEDOUT|EAI_AGAIN|SELF_SIGNED'

settings() {
    local name
    for name in "${SETTINGS[@]}"; do [[ -z ${!name-} ]] || echo "$name=${!name}"; done
}

# may_skip COMMAND…: what fetches; a failure of the network is no failure of ours.
may_skip() {
    # shellcheck disable=SC2154 # the directory of the script that sources this
    "$@" >"$work/fetch" 2>&1 && return 0
    cat "$work/fetch"
    ! grep -qE "$UNREACHABLE" "$work/fetch" || skip "a registry cannot be reached: $*"
    fail "$*"
}

# The certificates that the machine trusts in addition to Debian's.
trust_certificates() {
    compgen -G '/usr/local/share/ca-certificates/*.crt' >/dev/null || return 0
    tar -C /usr/local/share -cf - ca-certificates | in_capsule tar -C /usr/local/share -xf -
    in_capsule update-ca-certificates >/dev/null 2>&1
}
