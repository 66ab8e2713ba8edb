name=60_skips
. "$(dirname "$0")/note.sh"
exit 10
