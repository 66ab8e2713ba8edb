#!/usr/bin/env python3
"""Judges requests in the log of web.py.

    judge.py LOG PATTERN DELAY      hosts, requests and gaps of the paths that match PATTERN

Prints `requests=N pages=N repeated=N least=MS across=MS early=N`: requests, different pages, pages with more than one request, the
shortest time between two requests to a host, the same for requests of different nodes, and the number of such times that are
shorter than DELAY milliseconds minus the time that the start of a unit varies by. `-` stands for none.
"""

import collections
import re
import sys

# A request comes later than the start of its page that the delay is about: by this much more or less.
VARIATION_MS = 1200

log, pattern, delay = sys.argv[1], re.compile(sys.argv[2]), int(sys.argv[3])
hosts = collections.defaultdict(list)
for line in open(log, encoding="utf-8"):
    seconds, client, host, path = line.split()
    if pattern.search(path):
        hosts[host].append((float(seconds), client, path))

gaps, across = [], []
for host, requests in hosts.items():
    requests.sort()
    for (before, first, _), (after, second, path) in zip(requests, requests[1:]):
        gap = round((after - before) * 1000)
        gaps.append(gap)
        if first != second:
            across.append(gap)
        if gap < delay - VARIATION_MS:
            print(f"{host}{path}: {second} {gap} ms after {first}", file=sys.stderr)
times = collections.Counter(host + path for host, requests in hosts.items() for _, _, path in requests)
early = sum(gap < delay - VARIATION_MS for gap in gaps)
print(
    f"requests={times.total()} pages={len(times)} repeated={sum(count > 1 for count in times.values())}"
    f" least={min(gaps, default='-')} across={min(across, default='-')} early={early}"
)
