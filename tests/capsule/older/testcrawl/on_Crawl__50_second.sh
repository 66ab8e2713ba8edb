name=50_second
. "$(dirname "$0")/note.sh"
