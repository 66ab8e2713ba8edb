#!/bin/sh
# Copies the persona for a page with its own browser.
exec archivist hook housekeeping_persona "$@"
