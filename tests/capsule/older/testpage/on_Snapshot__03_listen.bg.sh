name=03_listen
. "$(dirname "$0")/note.sh"
trap 'echo "{\"type\": \"ArchiveResult\", \"status\": \"succeeded\", \"output_str\": \"told to end\"}"; echo "03_listen ended" >>"$SNAP_DIR/order.txt"; exit 0' TERM
echo "[*] listening"
while :; do sleep 0.1; done
