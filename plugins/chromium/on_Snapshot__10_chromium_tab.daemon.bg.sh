#!/bin/sh
# The settings are in config.json beside this file; archivist-hooks(7) has the contract.
exec archivist hook chromium_tab "$@"
