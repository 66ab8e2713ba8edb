name=61_fails
. "$(dirname "$0")/note.sh"
echo '{"type": "ArchiveResult", "status": "perhaps"}'
exit 3
