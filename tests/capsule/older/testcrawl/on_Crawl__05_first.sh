name=05_first
. "$(dirname "$0")/note.sh"
