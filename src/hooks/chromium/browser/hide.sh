# Hides a home directory in a mount namespace of its own, except for some paths in it, and gives up the right to mount.
# arguments: the directory; the paths that stay; --; the words to run
home=$1
shift
stage=$(mktemp -d -p /tmp) && mount -t tmpfs tmpfs "$stage" || exit 71
# The paths are kept in other places while the directory is covered.
number=0
for path in "$@"; do
    [ "$path" != -- ] || break
    number=$((number + 1))
    if [ -d "$path" ]; then mkdir "$stage/$number"; else : >"$stage/$number"; fi
    mount --rbind "$path" "$stage/$number" || exit 71
done
mount -t tmpfs -o mode=0755 tmpfs "$home" || exit 71
number=0
while [ "$1" != -- ]; do
    number=$((number + 1))
    if [ -d "$stage/$number" ]; then
        mkdir -p "$1"
    else
        mkdir -p "${1%/*}" && : >"$1"
    fi
    mount --rbind "$stage/$number" "$1" || exit 71
    shift
done
shift
umount -l "$stage" && rmdir "$stage"
exec setpriv --inh-caps=-all --ambient-caps=-all --bounding-set=-all -- "$@"
