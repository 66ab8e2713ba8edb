"""P1, P2, P3: what a hook costs that does nothing, in time and in CPU time."""
import json
import os
import statistics
import time

import rivals
from machine import PLUGINS, Failed, add, configure, cpu, nothing_runs, plugin, quiet, rows, spent, start, status_of, text, until

TRIVIAL = """#!/bin/sh
echo '{"type":"ArchiveResult","status":"succeeded","output_str":"done"}'
"""
HOOKS, MORE = 20, 50
# The floor, and what the orchestrator reads of each unit.
SEAM = "floor with readings"
STATE = "/srv/bench"
ARCHIVE = "/var/lib/archivist/archive/bench"
URL = "http://bench.test/%d"


def hook_files(count, script=TRIVIAL, kind="sh"):
    return [("on_Snapshot__20_hook%03d.%s" % (number + 1, kind), script) for number in range(count)]


def prepare():
    """Plugins of some and of more hooks, and what a hook of ours gets, for those who do without us."""
    os.makedirs(STATE + "/output", exist_ok=True)
    plugin("benchtrivial", hook_files(HOOKS))
    plugin("benchmore", hook_files(MORE))
    plugin("benchlook", [("on_Snapshot__20_hook001.sh", "#!/bin/sh\ncat /proc/$$/environ >environ\ncat /proc/$$/cmdline >argv\n" + TRIVIAL.split("\n", 1)[1])])
    configure("[Orchestrator]", "WorkersPerKind=8", "WorkersMax=24", "HostWorkers=8", "SnapshotsPerCrawl=8")
    crawl = add("benchlook", URL % 0, wait=True)
    seen = rows("SELECT s.directory, c.directory FROM snapshot s JOIN crawl c ON c.id = s.crawl_id WHERE c.id = ?", int(crawl[1:]))[0]
    copy_of_hook(*seen)
    for kind in ("hook-", "snapshot-"):
        link = "/run/systemd/system/floor-%s.service.d" % kind
        if not os.path.islink(link):
            os.symlink("/usr/lib/systemd/system/archivist-%s.service.d" % kind, link)
    text("systemctl", "daemon-reload")


def copy_of_hook(snapshot, crawl):
    """The floor's hooks: the same arguments, variables and directories, in a place of their own."""
    places = {snapshot: ARCHIVE + "/s1", crawl: ARCHIVE + "/c1", "benchlook": "benchtrivial"}
    for directory in ("", "/s1", "/c1", "/s1/benchtrivial"):
        os.makedirs(ARCHIVE + directory, exist_ok=True)
        # As the worker leaves it: writable for the hooks' group.
        text("chown", "archivist:archivist-hook", ARCHIVE + directory)
        os.chmod(ARCHIVE + directory, 0o2770)
    for name in ("argv", "environ"):
        with open(os.path.join(snapshot, "benchlook", name)) as file:
            content = file.read()
        for old, new in places.items():
            content = content.replace(old, new)
        if name == "argv":
            content = content[content.index("/etc/archivist"):]
        with open(os.path.join(STATE, name), "w") as file:
            file.write(content)
    with open(STATE + "/binds", "w") as file:
        file.write("\n".join([ARCHIVE + "/s1/benchtrivial", ARCHIVE + "/s1", ARCHIVE + "/c1", "-", "/var/lib/archivist/lib", PLUGINS]) + "\n")


def archive(name, *urls):
    """Archives, and waits: wall time in milliseconds, CPU time, id."""
    start()
    before, began = cpu(), time.monotonic()
    crawl = add(name, *urls, wait=True)
    took = (time.monotonic() - began) * 1000
    used = spent(before)
    wrong = rows("SELECT owner, hook, status, error FROM result WHERE crawl_id = ? AND status <> 'succeeded' LIMIT 3", int(crawl[1:]))
    if wrong or status_of(crawl) != "sealed":
        raise Failed("%s is %s: %s" % (crawl, status_of(crawl), wrong))
    return took, used, int(crawl[1:])


def starts(crawl):
    """When each hook might start, in milliseconds, and when the last one's outcome was committed."""
    times = rows("SELECT started_at, ended_at FROM result WHERE crawl_id = ? ORDER BY started_at, id", crawl)
    return [begin for begin, _ in times] + [max(end for _, end in times)]


def floor(what, count, at_once):
    answer = json.loads(text("bench-floor", what, STATE, str(count), str(at_once)))
    if len(answer["each_ms"]) != count:
        raise Failed("floor: %d of %d" % (len(answer["each_ms"]), count))
    return answer


def one_by_one(notes, interleave):
    """P1 and P3."""
    prepare()
    each = {name: [] for name in ("archivist", "floor", SEAM, "fork and exec")}
    whole = {"archivist": [], "floor": [], SEAM: []}
    used = {"archivist": [], "archivist, more hooks": [], "floor": [], SEAM: []}

    def ours():
        took, cpu_used, crawl = archive("benchtrivial", URL % 1)
        times = starts(crawl)
        each["archivist"] += [later - sooner for sooner, later in zip(times, times[1:])]
        whole["archivist"].append(took)
        used["archivist"].append(with_workers(cpu_used, crawl))
        _, cpu_used, crawl = archive("benchmore", URL % 2)
        used["archivist, more hooks"].append(with_workers(cpu_used, crawl))
        quiet()

    def units(who, what):
        before = cpu()
        answer = floor(what, HOOKS, 1)
        used[who].append({**spent(before), "client": answer["cpu_ms"]})
        each[who] += answer["each_ms"]
        whole[who].append(answer["all_ms"])
        until("an end of the floor's units", nothing_runs)

    def processes():
        each["fork and exec"] += floor("processes", HOOKS, 1)["each_ms"]

    others = rivals.contestants(notes, HOOKS, each, whole)
    quiet()
    try:
        clients = [lambda: units("floor", "units"), lambda: units(SEAM, "seam")]
        interleave([ours, processes] + clients + others, notes.counts(2, 15))
    finally:
        rivals.end()
    own = statistics.median(each["fork and exec"])
    for who, values in each.items():
        notes.note("P1", who, "a hook, one after another", "ms", values)
    for who, values in each.items():
        if who != "fork and exec" and len(values) > 1:
            notes.note("P1", who, "the same without the hook's own time", "ms", [value - own for value in values])
    for who, values in whole.items():
        notes.note("P1", who, "a snapshot of %d hooks" % HOOKS, "ms", values)
    note_cpu(notes, used)


def with_workers(used, crawl):
    """CPU time of the snapshot's worker is on record with its run."""
    (worker,) = rows("SELECT coalesce(sum(cpu_usec), 0) FROM run WHERE crawl_id = ? AND kind = 'snapshot'", crawl)[0]
    return {**used, "worker": worker / 1000}


def note_cpu(notes, used):
    few, more = used["archivist"], used["archivist, more hooks"]

    def per_hook(name):
        """What a hook adds: start and end of workers are in both."""
        return [(b[name] - a[name]) / (MORE - HOOKS) for a, b in zip(few, more)]

    both = [a + b for a, b in zip(per_hook("orchestrator"), per_hook("worker"))]
    notes.note("P3", "archivist", "a hook more: orchestrator and worker", "ms CPU", both)
    for who in ("floor", SEAM):
        notes.note("P3", who, "a hook more: orchestrator and worker", "ms CPU", [one["client"] / HOOKS for one in used[who]])
    for name in ("orchestrator", "worker"):
        notes.note("P3", "archivist", "a hook more: " + name, "ms CPU", per_hook(name))
    for name in ("PID 1", "bus", "journal", "everything"):
        notes.note("P3", "archivist", "a hook more: " + name, "ms CPU", per_hook(name))
        for who in ("floor", SEAM):
            notes.note("P3", who, "a hook more: " + name, "ms CPU", [one[name] / HOOKS for one in used[who]])
    whole = [(one["orchestrator"] + one["worker"]) / HOOKS for one in few]
    notes.note("P3", "archivist", "the same with the workers' own starts, of %d hooks" % HOOKS, "ms CPU", whole)


def eight_at_once(notes, interleave):
    """P2: units a second, and what the floor reaches with as many."""
    prepare()
    snapshots = notes.counts(8, 48)
    rate = {"archivist": [], "floor": [], "fork and exec": []}

    def ours():
        # A host each: pages of one host take turns.
        _, _, crawl = archive("benchtrivial", *("http://bench%d.test/" % number for number in range(snapshots)))
        times = [row[0] for row in rows("SELECT started_at FROM run WHERE crawl_id = ? AND kind <> 'crawl' ORDER BY started_at", crawl)]
        if len(times) != snapshots * (HOOKS + 1):
            raise Failed("%d units instead of %d" % (len(times), snapshots * (HOOKS + 1)))
        rate["archivist"].append((len(times) - 1) * 1000 / (times[-1] - times[0]))
        quiet()

    def units():
        count = snapshots * (HOOKS + 1)
        rate["floor"].append(count * 1000 / floor("units", count, 8)["all_ms"])
        until("an end of the floor's units", nothing_runs)

    def processes():
        count = snapshots * (HOOKS + 1)
        rate["fork and exec"].append(count * 1000 / floor("processes", count, 8)["all_ms"])

    others = rivals.eight(notes, snapshots * (HOOKS + 1), rate)
    quiet()
    try:
        interleave([ours, units, processes] + others, notes.counts(2, 7))
    finally:
        rivals.end()
    for who, values in rate.items():
        notes.note("P2", who, "units, 8 at once", "/s", values)
