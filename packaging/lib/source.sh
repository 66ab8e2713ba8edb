# shellcheck shell=bash
# The files of the work tree.

# export_tree DIRECTORY [PATHSPEC…]: the files that git tracks or would add, with their timestamps, so that cargo rebuilds
# only changed files.
export_tree() {
    local tree=$1
    shift
    rm -rf "$tree"
    mkdir -p "$tree"
    git -C "$SOURCE" -c safe.directory='*' ls-files -z --cached --others --exclude-standard -- "$@" |
        tar -C "$SOURCE" --null --verbatim-files-from --ignore-failed-read --warning=no-failed-read -T - -cf - |
        tar -C "$tree" -xf -
}
