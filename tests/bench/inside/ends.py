"""P6, P7: the end of large trees, and a restart under running work."""
import json
import time

import hooks
import rivals
from machine import Failed, SERVICE, add, configure, drop_in, emptied, group_of, nothing_runs, plugin, processes, quiet, start, text, until

TREE = """#!/bin/sh
%s
n=0
while [ $n -lt %d ]; do sleep 7777 & n=$((n + 1)); done
wait
"""
WAITING = 100


def cancel(notes, interleave):
    """P6: until the kernel has no process of the tree any more, by archivist and by systemctl."""
    count = notes.counts(300, 1000)
    hooks.prepare()
    kinds = {"polite": ":", "stubborn": "trap '' TERM"}
    for kind in notes.counts(["polite"], list(kinds)):
        script = TREE % (kinds[kind], count)
        path = plugin("benchtree", [("on_Snapshot__20_tree.sh", script)]) + "/on_Snapshot__20_tree.sh"
        # Neither takes longer to lose patience than the other, and a tree may be this large.
        for prefix in ("archivist-hook-benchtree-", "floor-hook-benchtree-"):
            drop_in(prefix, "TasksMax=infinity", "MemoryMax=infinity", "TimeoutStopSec=2s")
        quiet()
        took = {"archivist": [], "systemctl stop": []}

        def ours():
            start()
            crawl = add("benchtree", "http://bench.test/tree")
            until("the hook's unit", lambda: tree_units())
            group = group_of(tree_units()[0])
            until("a tree of %d" % count, lambda: processes(group) > count, 120)
            took["archivist"].append(emptied(group, ["archivist", "cancel", crawl]))
            quiet()

        def by_hand():
            _, environment, places = rivals.hook()
            text("systemd-run", "--quiet", "--collect", "--unit=floor-hook-benchtree-1", *rivals.unit_options(environment, places), path)
            group = group_of("floor-hook-benchtree-1.service")
            until("a tree of %d" % count, lambda: processes(group) > count, 120)
            took["systemctl stop"].append(emptied(group, ["systemctl", "stop", "--no-block", "floor-hook-benchtree-1.service"]))
            until("an end of the tree", nothing_runs)

        interleave([ours, by_hand], notes.counts(2, 9))
        for who, values in took.items():
            notes.note("P6", who, "a %s tree of %d processes, until all are gone" % (kind, count), "ms", values)


def tree_units():
    return [line.split()[0] for line in text("systemctl", "list-units", "--plain", "--no-legend", "--state=running", "archivist-hook-benchtree-*.service").splitlines()]


def restart(notes, interleave):
    """P7: from the command and from the start of the new process until all that runs is known again."""
    # The next one is started when one has said that it is ready.
    plugin("benchwaits", hooks.hook_files(WAITING, "#!/bin/sh\necho ready\nexec sleep 7777\n", "finite.bg.sh"))
    configure("[Orchestrator]")
    crawl = add("benchwaits", "http://bench.test/waits")
    until("%d hooks" % WAITING, lambda: running() == WAITING, 120)
    invocations = unit_ids()
    whole, own = [], []
    for _ in range(notes.counts(2, 15)):
        began = time.time() * 1e6
        text("systemctl", "restart", SERVICE)
        line = adopted_since(began)
        if int(line["ARCHIVIST_ADOPTED"]) < WAITING:
            raise Failed("%s adopted of %d" % (line["ARCHIVIST_ADOPTED"], WAITING))
        at = int(line["_SOURCE_REALTIME_TIMESTAMP"])
        whole.append((at - began) / 1000)
        own.append((at - started_at()) / 1000)
    if unit_ids() != invocations:
        raise Failed("hooks were started again")
    notes.note("P7", "archivist", "restart, until %d hooks are adopted" % WAITING, "ms", whole)
    notes.note("P7", "archivist", "of that since the start of the new process", "ms", own)
    text("archivist", "cancel", crawl)
    until("an end of the hooks", nothing_runs, 120)


def running():
    return len(text("systemctl", "list-units", "--plain", "--no-legend", "--state=running", "archivist-hook-benchwaits-*").splitlines())


def unit_ids():
    return sorted(text("systemctl", "show", "--property=InvocationID", "--value", "archivist-hook-benchwaits-*").split())


def started_at():
    """Microseconds of the wall clock."""
    path = "/org/freedesktop/systemd1/unit/archivist_2dorchestrator_2eservice"
    answer = text("busctl", "get-property", "org.freedesktop.systemd1", path, "org.freedesktop.systemd1.Service", "ExecMainStartTimestamp")
    return int(answer.split()[1])


def adopted_since(began):
    """The line in which the orchestrator says what it took up."""
    found = []

    def look():
        lines = text("journalctl", "--quiet", "--output=json", "--since=@%d" % (began // 1e6), "_SYSTEMD_UNIT=" + SERVICE).splitlines()
        said = [json.loads(line) for line in lines if "ARCHIVIST_ADOPTED" in line]
        found[:] = [line for line in said if int(line["_SOURCE_REALTIME_TIMESTAMP"]) >= began]
        return found

    until("a line about what was adopted", look, 30)
    return found[0]
