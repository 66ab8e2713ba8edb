#!/bin/sh
# Copies the persona of the crawl before other hooks use it.
exec archivist hook housekeeping_persona "$@"
