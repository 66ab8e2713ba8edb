#!/bin/sh
echo 50_after >>"$SNAP_DIR/order.txt"
