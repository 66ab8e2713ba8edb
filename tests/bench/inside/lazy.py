"""P11: a page with a lazy picture below the screen, and the same page with an eager one, in turns."""
import contextlib
import os
import shutil
import socket
import time

from machine import Failed, add, configure, nothing_runs, quiet, rows, start, status_of, text, until

PLUGINS = "screenshot,pdf,dom"
# Both are pages of the same server, and differ only in loading=lazy.
PAGES = {"lazy picture": "/lazy-far", "eager picture": "/eager-far"}
UNIT = "bench-lazy.service"
SERVER = "/opt/bench-web/25-lazy-images/server.py"
# The PDFs of the last round, for `run`, which reads their words and pictures.
PRINTED = "/srv/bench/printed"


def pairs(notes, interleave):
    configure("[Orchestrator]", "HostDelaySec=0")
    port = free_port()
    text("systemd-run", "--quiet", "--collect", "--unit=" + UNIT, "--property=Type=exec", "python3", "-B", SERVER, str(port))
    until("the server of the pages", lambda: answers(port), 20)
    os.makedirs(PRINTED, exist_ok=True)
    whole, browser = {who: [] for who in PAGES}, {who: [] for who in PAGES}

    def measure(who):
        def run():
            took, hooks, pdf = archive(port, PAGES[who])
            whole[who].append(took)
            browser[who].append(hooks)
            shutil.copy(pdf, "%s/%s.pdf" % (PRINTED, who.split()[0]))
        return run

    try:
        # The first start of a browser reads its files from the disk.
        archive(port, PAGES["eager picture"])
        interleave([measure(who) for who in PAGES], notes.counts(2, 15))
    finally:
        text("systemctl", "stop", UNIT)
    quiet()
    for what, values in (("a page with " + PLUGINS.replace(",", ", "), whole), ("of that the hooks of the page", browser)):
        for who in PAGES:
            notes.note("P11", who, what, "ms", values[who])
        ratios = [lazy / eager for lazy, eager in zip(*(values[who] for who in PAGES))]
        notes.note("P11", "lazy / eager, of each pair", what, "×", ratios)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def answers(port):
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False


def archive(port, path):
    """Wall time in milliseconds of the crawl and of the hooks of its page, and the file that was printed."""
    start()
    began = time.monotonic()
    crawl = add(PLUGINS, "http://127.0.0.1:%d%s" % (port, path), wait=True)
    took = (time.monotonic() - began) * 1000
    results = rows("SELECT plugin, status, started_at, ended_at FROM result WHERE crawl_id = ? AND owner LIKE 's%'", int(crawl[1:]))
    good = {plugin for plugin, status, _, _ in results if status == "succeeded"}
    if status_of(crawl) != "sealed" or not good.issuperset(PLUGINS.split(",")):
        raise Failed("%s of %s is %s: %s" % (crawl, path, status_of(crawl), results))
    hooks = max(end for _, _, _, end in results) - min(begin for _, _, begin, _ in results)
    ((directory,),) = rows("SELECT directory FROM snapshot WHERE crawl_id = ?", int(crawl[1:]))
    until("an end of the crawl", nothing_runs)
    return took, hooks, directory + "/pdf/output.pdf"
