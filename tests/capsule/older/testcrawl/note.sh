# Lies in the folder of the hooks, which find it by their own path: records that a hook ran, and its arguments.
printf '%s\n' "$@" >"argv-$name"
echo "$name" >>"$CRAWL_DIR/order.txt"
