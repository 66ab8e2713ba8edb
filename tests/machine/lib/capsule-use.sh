# shellcheck shell=bash
# Using and stopping a running capsule.

STOP_SECONDS=90

# enter NAME COMMAND…: runs the command inside, with a clean environment, and returns its exit status.
# The command joins the cgroup of the inner PID 1, because a process outside could not be moved into a scope.
enter() { (become "$@"); }

# become NAME COMMAND…: the same, in place of this shell. Reads the state as state_of does, without its subshells: scripts
# run thousands of commands.
become() {
    local state=$CACHE/capsules/$1 pid cgroup clock spaces=(--net)
    shift
    read -r pid <"$state/pid"
    read -r cgroup <"$state/cgroup"
    read -r clock <"$state/clock" || true
    [[ -z $clock ]] || spaces+=(--time)
    echo "$BASHPID" >"$cgroup/payload/init.scope/cgroup.procs"
    exec nsenter --target "$pid" --pid --mount --cgroup --uts --ipc "${spaces[@]}" --root --wd \
        env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root \
        TERM="${TERM:-dumb}" LANG=C.UTF-8 "$@"
}

# copy_out NAME:/PATH DEST, or copy_in: paths in the capsule are opened inside, so that symbolic links are resolved there.
copy_out() {
    local name=${1%%:*} path=${1#*:} dest=$2
    need_running "$name"
    if [[ -d $dest ]]; then
        enter "$name" tar -C "$(dirname "$path")" -cf - -- "$(basename "$path")" | tar -C "$dest" -xf -
    elif enter "$name" test -d "$path"; then
        mkdir "$dest"
        enter "$name" tar -C "$path" -cf - . | tar -C "$dest" -xf -
    else
        enter "$name" cat -- "$path" >"$dest"
    fi
}

copy_in() {
    local source=$1 name=${2%%:*} path=${2#*:}
    need_running "$name"
    if enter "$name" test -d "$path"; then
        tar -C "$(dirname "$source")" -cf - -- "$(basename "$source")" | enter "$name" tar -C "$path" -xf -
    elif [[ -d $source ]]; then
        enter "$name" mkdir -- "$path"
        tar -C "$source" -cf - . | enter "$name" tar -C "$path" -xf -
    else
        enter "$name" sh -c 'cat >"$1"' sh "$path" <"$source"
    fi
}

list_capsules() {
    local state name
    for state in "$CACHE"/capsules/*/; do
        name=$(basename "$state")
        if [[ -d $state ]] && is_running "$name"; then
            printf '%s\t%s\t%s\n' "$name" "$(state_of "$name" release)" "$(state_of "$name" pid)"
        fi
    done
}

# end_capsule NAME: requests the inner PID 1 to power off, and kills it after a timeout.
end_capsule() {
    local name=$1
    kill -s RTMIN+4 "$(state_of "$name" pid)"
    wake_entered "$name"
    wait_ended "$name" "$STOP_SECONDS" && return 0
    say "capsule '$name' did not power off within $STOP_SECONDS s, killing its processes"
    end_inner_init "$name"
}

# nsenter stops itself when its command is stopped, for example because its terminal closed. It would never reap the
# command, and a pid namespace ends only when all its processes are reaped.
wake_entered() {
    local pid
    while read -r pid; do
        kill -s CONT "$pid" 2>/dev/null || true
    done <"$(state_of "$1" cgroup)/payload/init.scope/cgroup.procs"
}

# Kills only processes in the cgroups of the capsule: the inner PID 1, with which the kernel kills its whole pid
# namespace, and processes that entered the capsule.
end_inner_init() {
    local name=$1 cgroup
    cgroup=$(state_of "$name" cgroup)
    if is_running "$name"; then
        echo 1 >"$cgroup/payload/cgroup.kill"
        wait_ended "$name" 30 || die "the PID 1 of capsule '$name' ($(state_of "$name" pid)) survived SIGKILL"
    fi
    remove_cgroup "$cgroup"
}
