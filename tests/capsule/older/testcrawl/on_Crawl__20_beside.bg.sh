name=20_beside
. "$(dirname "$0")/note.sh"
trap 'echo "20_beside ended" >>"$CRAWL_DIR/order.txt"; exit 0' TERM
echo "[*] ready"
while :; do sleep 0.1; done
