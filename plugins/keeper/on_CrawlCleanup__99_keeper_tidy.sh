#!/bin/sh
# Empties the directory that the crawl's hooks shared: only their own user can.
exec archivist hook keeper_tidy "$@"
