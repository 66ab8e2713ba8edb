printf '%s\n' "$@" >"argv-$name"
echo "$name" >>"$SNAP_DIR/order.txt"
