#!/bin/sh
# Writes the heartbeat of the crawl until it is stopped at the end of the crawl. Contract: archivist-hooks(7).
exec archivist hook housekeeping "$@"
