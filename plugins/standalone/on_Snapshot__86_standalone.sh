#!/bin/sh
# Settings: config.json in this directory. Contract: archivist-hooks(7).
exec archivist hook standalone "$@"
