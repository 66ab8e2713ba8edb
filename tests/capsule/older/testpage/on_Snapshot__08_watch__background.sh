name=08_watch
. "$(dirname "$0")/note.sh"
trap 'echo "08_watch ended" >>"$SNAP_DIR/order.txt"; exit 0' TERM
echo "[*] watching"
while :; do sleep 0.1; done
