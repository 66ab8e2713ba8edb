"""P9: ten pages with a browser, by our own plugins and by abx-dl with those of the same names, page by page."""
import os
import re
import time

import rivals
from machine import Failed, add, configure, nothing_runs, quiet, rows, status_of, text, unit, until

PLUGINS = "wget,favicon,headers,screenshot,pdf,dom,title"
PAGES = ["page/%d" % number for number in range(1, 9)] + ["hostile", "js-title"]
# What every page has.
SURE = ("screenshot", "pdf", "dom", "title")
UNIT = "bench-site.service"


def ten_pages(notes, interleave):
    configure("[Orchestrator]")
    site = begin_site()
    took = {"archivist": []}

    def ours():
        began = time.monotonic()
        crawl = add(PLUGINS, *(site + page for page in PAGES), wait=True)
        took["archivist"].append((time.monotonic() - began) * 1000)
        good = rows("SELECT count(*) FROM result WHERE crawl_id = ? AND status = 'succeeded' AND plugin IN (%s)" % ",".join("?" * len(SURE)),
                    int(crawl[1:]), *SURE)[0][0]
        if status_of(crawl) != "sealed" or good != len(SURE) * len(PAGES):
            raise Failed("%s is %s, %d of %d" % (crawl, status_of(crawl), good, len(SURE) * len(PAGES)))
        until("an end of the crawl", nothing_runs)

    def theirs():
        took["abx-dl"].append(sum(rivals.abx_dl(PLUGINS, len(SURE), site + page, rivals.ABX_PLUGINS) for page in PAGES))

    contestants = [ours]
    if rivals.available(notes, "P9", "abx-dl", os.path.exists(rivals.ABX_DL) and os.path.isdir(rivals.ABX_PLUGINS)):
        took["abx-dl"] = []
        contestants.append(rivals.careful(notes, "P9", "abx-dl", theirs))
    try:
        interleave(contestants, notes.counts(1, 3))
    finally:
        text("systemctl", "stop", UNIT)
    quiet()
    for who, values in took.items():
        notes.note("P9", who, "%d pages with %s" % (len(PAGES), PLUGINS.replace(",", ", ")), "ms", values)


def begin_site():
    """Its URL."""
    text("systemd-run", "--quiet", "--collect", "--unit=" + UNIT, "--property=Type=exec", "python3", "/opt/bench-site/server.py", "--port", "0")
    found = []

    def look():
        said = text("journalctl", "--quiet", "--output=cat", "_SYSTEMD_INVOCATION_ID=" + unit(UNIT, "InvocationID"))
        found[:] = re.findall(r"^listening on (\S+)$", said, re.MULTILINE)
        return found

    until("the site", look, 20)
    return found[0]
