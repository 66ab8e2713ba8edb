# shellcheck shell=bash
# The command `capsule` for tests. What it runs in a capsule is started by this shell: the script takes longer than most of
# these commands.
for machine_part in "$ROOT"/packaging/lib/report.sh "$ROOT"/tests/machine/lib/capsule-{state,use}.sh; do
    # shellcheck source=/dev/null
    source "$machine_part"
done

capsule() {
    if [[ $1 == run ]]; then
        (need_running "$2"; become "${@:2}")
    else
        "$ROOT/tests/machine/capsule" "$@"
    fi
}
