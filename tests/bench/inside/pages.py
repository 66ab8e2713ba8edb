"""P5: very long queues."""
import subprocess
import time

import hooks
from machine import Failed, ORCHESTRATOR, SERVICE, configure, crawl_in, memory, nothing_runs, plugin, rows, text, unit, until, usage


# URLs of one crawl; longer queues are of several.
AT_ONCE = 100_000


def queued(notes, interleave):
    """One page at a time, from queues of several lengths."""
    plugin("benchone", hooks.hook_files(1))
    configure("[Orchestrator]", "WorkersPerKind=1", "SnapshotsPerCrawl=1", "HostWorkers=1")
    for length in notes.counts((1_000, 20_000), (1_000, 10_000, 100_000, 1_000_000)):
        queue(notes, length, notes.counts(10, 200))
    add_many(notes)


def add_many(notes):
    count = notes.counts(20_000, AT_ONCE)
    crawl, took = add_pages(count)
    notes.note("P5", "archivist", "adding %d URLs" % count, "ms", [took])
    cancel(crawl)
    until("an end of all units", nothing_runs, 120)


def add_pages(count):
    """Of a thousand hosts."""
    urls = "".join("http://host%d.bench.test/%d\n" % (number % 1000, number) for number in range(count))
    began = time.monotonic()
    done = subprocess.run(["archivist", "add", "--json", "--plugins", "benchone", "-"], input=urls, capture_output=True, text=True)
    took = (time.monotonic() - began) * 1000
    if done.returncode:
        raise Failed("add of %d: %s" % (count, done.stderr[-1000:]))
    return int(crawl_in(done.stdout)[1:]), took


def cancel(crawl):
    began = time.monotonic()
    text("archivist", "cancel", "c%d" % crawl)
    return (time.monotonic() - began) * 1000


def queue(notes, length, claims):
    """What it takes to give a place that became free to the next page."""
    added = [add_pages(min(AT_ONCE, length - before))[0] for before in range(0, length, AT_ONCE)]
    crawl = added[0]

    def over():
        # Not of the snapshots: counting a million would be at the orchestrator's cost.
        return rows("SELECT count(*) FROM run WHERE crawl_id = ? AND kind = 'snapshot' AND status = 'ended'", crawl)[0][0]

    # Pages that are added hold up those that are worked on, which is another question.
    all_added = time.time() * 1000
    until("the first page", lambda: over() > 2)
    pid, before, first = int(unit(SERVICE, "MainPID")), usage(ORCHESTRATOR), over()
    until("%d pages" % claims, lambda: over() >= first + claims, 300)
    used, done = usage(ORCHESTRATOR) - before, over() - first
    times = rows("""SELECT s.started_at, r.ended_at FROM run r JOIN snapshot s ON s.id = r.snapshot_id
                    WHERE r.crawl_id = ? AND r.kind = 'snapshot' AND s.status = 'sealed' AND s.started_at > ?
                    ORDER BY s.started_at""", crawl, all_added)
    waits = [later[0] - sooner[1] for sooner, later in zip(times, times[1:])]
    what = "of %s queued: " % format(length, ",").replace(",", " ")
    notes.note("P5", "archivist", what + "from the end of a worker to the next page", "ms", waits)
    notes.note("P5", "archivist", what + "orchestrator for a page", "ms CPU", [used / done])
    notes.note("P5", "archivist", what + "resident memory", "MiB", [memory(pid)])
    notes.note("P5", "archivist", what + "cancelling the rest", "ms", [sum(cancel(crawl) for crawl in reversed(added))])
    until("an end of all units", nothing_runs, 120)
