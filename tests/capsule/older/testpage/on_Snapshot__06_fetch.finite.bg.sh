name=06_fetch
. "$(dirname "$0")/note.sh"
echo '{"succeeded": true, "skipped": false}'
until [ -e ../testpage/last ]; do sleep 0.1; done
echo fetched >fetched.txt
echo "06_fetch ended" >>"$SNAP_DIR/order.txt"
