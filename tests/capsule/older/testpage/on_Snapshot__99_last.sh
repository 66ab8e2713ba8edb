#!/bin/sh
name=99_last
. "$(dirname "$0")/note.sh"
touch last
