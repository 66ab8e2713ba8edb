#!/bin/bash
# Pages, servers and lists as people have them: the second half of the cases of tests/web, whose pages are archived side by side.
# In a short run on the stable release alone, and early, because it takes minutes.
# In a short run in turn 2 of 3.
HALF=second
source "$(dirname "$0")/web.sh"
