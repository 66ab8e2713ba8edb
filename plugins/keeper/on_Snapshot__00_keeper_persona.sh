#!/bin/sh
# Copies the persona for a page that has a browser of its own.
exec archivist hook keeper_persona "$@"
