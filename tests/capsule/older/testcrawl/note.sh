# Beside the hooks, found by their own path: notes that a hook runs, and with which arguments.
printf '%s\n' "$@" >"argv-$name"
echo "$name" >>"$CRAWL_DIR/order.txt"
