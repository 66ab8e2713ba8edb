#!/bin/sh
# Says that the crawl is alive, until it is told that the crawl is over; archivist-hooks(7) has the contract.
exec archivist hook keeper "$@"
