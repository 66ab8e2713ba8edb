"""What the faults do and count inside a capsule."""
import collections
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time

SERVICE = "archivist-orchestrator.service"


def text(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def ask(*verb):
    return json.loads(text("archivist", *verb, "--json"))


def main_pid(unit=SERVICE):
    return int(text("systemctl", "show", "--property=MainPID", "--value", unit))


def until(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            sys.exit("not within %s s" % seconds)
        time.sleep(0.02)


def is_open(crawl):
    return ask("list", "crawls", crawl)[0]["ended_at"] is None


def kill(count, crawl):
    """SIGKILL for the orchestrator at random instants; how many hit before the crawl was over."""
    done = 0
    for _ in range(int(count)):
        until(lambda: main_pid() > 0)
        pid = main_pid()
        time.sleep(random.uniform(0, 0.8))
        if not is_open(crawl):
            break
        os.kill(pid, signal.SIGKILL)
        done += 1
        subprocess.run(["systemctl", "reset-failed", SERVICE], capture_output=True)
        until(lambda: main_pid() not in (0, pid))
    print(done)


def units():
    lines = text("systemctl", "list-units", "--all", "--plain", "--no-legend", "archivist-*").splitlines()
    return {line.split()[0] for line in lines}


def ghosts():
    """Runs on record that have not ended and whose unit is gone; looked at twice, for what is just ending."""
    def look():
        runs = ask("list", "runs", "--limit", "0")
        loaded = units()
        return {run["id"] for run in runs if run["outcome"] is None and run["unit"] not in loaded}

    print(len(look() & look()))


def stories(crawl):
    """Lines that hooks wrote: directory of the page, hook, what."""
    for page in ask("list", "snapshots", crawl, "--limit", "0"):
        directory = page["directory"]
        for top, _, files in os.walk(directory):
            if "story" in files:
                with open(os.path.join(top, "story")) as story:
                    for line in story:
                        yield (page["id"], *line.split())


def judge(crawl, hooks):
    """Lost: no result of its own. Twice: a hook that came to its end more than once, or has two runs that did."""
    results = ask("list", "results", crawl, "--limit", "0")
    runs = ask("list", "runs", crawl, "--limit", "0")
    good = {(r["owner"], r["hook"]) for r in results if r["status"] == "succeeded"}
    ended = [(r["owner"], r["hook"]) for r in runs if r["kind"] == "hook" and r["outcome"] == {"kind": "exit", "detail": 0}]
    told = [line for line in stories(crawl) if line[2] == "end"]
    beside = [line for line in stories(crawl) if line[2] == "overlap"]
    unknown = [r for r in runs if r["kind"] == "hook" and r["outcome"] is None]
    print("lost=%d" % (int(hooks) - len(good)), "twice=%d" % (len(ended) - len(set(ended))),
          "again=%d" % (len(told) - len(set(told))), "beside=%d" % len(beside), "open=%d" % len(unknown))


def outcomes(crawl, count):
    """Missing: hooks without any run. Wrong: what a hook did, which it wrote down as `end CODE`, is not on record, or
    something is that it did not do. Unstarted: runs whose start never reached systemd, made again."""
    runs = [r for r in ask("list", "runs", crawl, "--limit", "0") if r["kind"] == "hook"]
    did, recorded = collections.Counter(), collections.Counter()
    for page, hook, _, code in stories(crawl):
        did[(page, hook, int(code))] += 1
    for run in runs:
        outcome = run["outcome"] or {}
        if outcome != {"kind": "lost"}:
            recorded[(run["owner"], run["hook"], outcome.get("detail") if outcome.get("kind") == "exit" else None)] += 1
    unstarted = sum(r["outcome"] == {"kind": "lost"} for r in runs)
    wrong = sum(((did - recorded) + (recorded - did)).values())
    print("missing=%d" % (int(count) - len({(r["owner"], r["hook"]) for r in runs})), "wrong=%d" % wrong, "unstarted=%d" % unstarted)


def cancel(crawl, unit):
    """Milliseconds from the request until the kernel has no process of the unit any more."""
    group = text("systemctl", "show", "--property=ControlGroup", "--value", unit).strip()
    events = "/sys/fs/cgroup%s/cgroup.events" % group

    def is_empty():
        try:
            with open(events) as lines:
                return "populated 0" in lines.read()
        except OSError:
            return True

    if not group or is_empty():
        sys.exit("nothing runs in %s" % unit)
    began = time.monotonic()
    text("archivist", "cancel", crawl)
    until(is_empty)
    print(round((time.monotonic() - began) * 1000))


def latency(count, pause):
    """Milliseconds that the orchestrator takes to answer, median and 99th percentile, once every PAUSE seconds."""
    taken = []
    for _ in range(int(count)):
        began = time.monotonic()
        text("busctl", "call", "org.archivist1", "/org/archivist1", "org.archivist1.Manager", "Status")
        taken.append((time.monotonic() - began) * 1000)
        time.sleep(float(pause))
    taken.sort()
    print("median=%.0f" % taken[len(taken) // 2], "p99=%.0f" % taken[min(len(taken) - 1, int(len(taken) * 0.99))])


def promises(plugin):
    """Adds pages, one crawl each, and says on stdout what was acknowledged (`added CRAWL`), and what the orchestrator says is
    done (`sealed CRAWL`), until it is ended."""
    sealed = set()
    for number in range(100_000):
        url = "http://power%d.test/%d" % (number % 5, number)
        print("added", ask("add", "--plugins", plugin, url)["crawl"], flush=True)
        for crawl in ask("list", "crawls", "--status", "sealed", "--limit", "0"):
            if crawl["id"] not in sealed:
                sealed.add(crawl["id"])
                print("sealed", crawl["id"], flush=True)


def kept():
    """Whether the database is sound, and how much of what `promises` said, on stdin, is not so: pages that are not there, that
    were done and are not, and files of hooks that succeeded which are not what they were."""
    said = [line.split() for line in sys.stdin if len(line.split()) == 2]
    added, sealed = ({name for word, name in said if word == kind} for kind in ("added", "sealed"))
    database = sqlite3.connect("file:/var/lib/archivist/archivist.sqlite3?mode=ro", uri=True)
    integrity = database.execute("PRAGMA integrity_check").fetchone()[0]
    crawls = {crawl["id"]: crawl["status"] for crawl in ask("list", "crawls", "--limit", "0")}
    undone = [name for name in sealed if crawls.get(name) != "sealed"]
    print("integrity=%s" % integrity, "lost=%d" % len(added - set(crawls)), "undone=%d" % len(undone), "spoilt=%d" % len(list(spoilt())),
          "added=%d" % len(added), "sealed=%d" % len(sealed))


def spoilt():
    """Results that succeeded and whose files are not whole."""
    directories = {page["id"]: page["directory"] for page in ask("list", "snapshots", "--limit", "0")}
    for result in ask("list", "results", "--status", "succeeded", "--limit", "0"):
        if result["plugin"] == "testpower":
            directory = os.path.join(directories[result["owner"]], result["plugin"])
            check = subprocess.run(["sha256sum", "--check", "--status", result["output"]], cwd=directory, capture_output=True)
            if check.returncode:
                yield result


if __name__ == "__main__":
    globals()[sys.argv[1]](*sys.argv[2:])
