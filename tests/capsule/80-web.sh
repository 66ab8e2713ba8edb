#!/bin/bash
# Pages, servers and lists as people have them: the first half of the cases of tests/web, whose pages are archived side by side.
# In a short run early, because it takes minutes.
HALF=first
source "$(dirname "$0")/web.sh"
