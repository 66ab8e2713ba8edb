"""P4: an orchestrator that has nothing to do."""
import time

from machine import ORCHESTRATOR, SERVICE, configure, memory, tasks, unit, usage


def idle(notes, interleave):
    seconds = notes.counts(5, 600)
    configure("[Orchestrator]")
    pid = int(unit(SERVICE, "MainPID"))
    # What it does once after its start.
    time.sleep(notes.counts(2, 30))
    woken, used = tasks(pid), usage(ORCHESTRATOR)
    time.sleep(seconds)
    woken, used = tasks(pid) - woken, usage(ORCHESTRATOR) - used
    notes.note("P4", "archivist", "woken up", "/min", [woken * 60 / seconds])
    notes.note("P4", "archivist", "CPU time", "ms/min", [used * 60 / seconds])
    notes.note("P4", "archivist", "resident memory", "MiB", [memory(pid)])
    notes.note("P4", "archivist", "of that its own, not files", "MiB", [memory(pid, "RssAnon")])
