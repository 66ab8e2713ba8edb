#!/bin/sh
# Copies the persona in use, before anything is at work on it.
exec archivist hook keeper_persona "$@"
