#!/bin/sh
# Empties the shared directory of the hooks of the crawl; only their user can do this.
exec archivist hook housekeeping_tidy "$@"
