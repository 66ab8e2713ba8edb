# Runs a browser in the network namespace that the program before this script has made, if it has no network.
# arguments: the network namespace outside if it is known, or nothing without a namespace; a directory for all files of the browser; the
# home directory that is hidden, if any, and its device and inode outside; the browser's words
outside=$1
directory=$2
hidden=$3
identity=$4
shift 4

refuse() {
    echo "replay refused: $1" >&2
    exit 78
}
if [ -n "$outside" ]; then
    inside=$(readlink /proc/self/ns/net) || refuse 'the network namespace of the browser cannot be read'
    [ "$inside" != "$outside" ] || refuse 'the browser would have the network of the machine'
    [ "$(wc -l </proc/net/route)" -le 1 ] || refuse 'the network namespace of the browser has routes'
    # Interfaces may be there: those of tunnels are in each namespace.
    ! grep -qv ' lo$' /proc/net/ipv6_route 2>/dev/null || refuse 'the network namespace of the browser has routes'
    # A machine without a network has none of these, but may have services.
    [ "$(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | wc -l)" -le 2 ] || refuse 'the network namespace of the browser has sockets'
fi

if [ -n "$identity" ]; then
    [ "$(stat -L -c %d:%i "$hidden" 2>/dev/null)" != "$identity" ] || refuse 'the browser would see the home directory'
fi

export XAUTHORITY="${XAUTHORITY:-${HOME:-/}/.Xauthority}"
export HOME="$directory/home" TMPDIR="$directory" DBUS_SESSION_BUS_ADDRESS=unix:path=/dev/null
unset XDG_CONFIG_HOME XDG_CACHE_HOME XDG_DATA_HOME
mkdir -p "$HOME" || exit 73
# Chromium reads commands from descriptor 3 and writes to descriptor 4.
exec "$@" 3<&0 4>&1 0</dev/null 1>&2
