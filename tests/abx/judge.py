#!/usr/bin/env python3
"""Compares what the hooks of abx-plugins said with what is right, and prints the table.

    judge.py HOOKS.tsv DIRECTORY

DIRECTORY has crawl-1, crawl-2, …, each with snapshots.json, results.json and runs.json of `archivist list`; and dl-1, dl-2, …
with PAGE/index.jsonl of abx-dl and a file `seconds`, where that was run as well. Ends with 1 where archivist's status is not
right; what abx-dl says, and all times, are for reading only.
"""

import json
import statistics
import sys
from collections import Counter, defaultdict
from pathlib import Path
from urllib.parse import urlsplit

SETUP = "crawl"


def main():
    rules = read_rules(Path(sys.argv[1]))
    directory = Path(sys.argv[2])
    crawls = [read_crawl(path) for path in sorted(directory.glob("crawl-*")) if (path / "runs.json").exists()]
    others = [read_dl(path) for path in sorted(directory.glob("dl-*"))]
    if not crawls:
        sys.exit("no crawl in " + str(directory))
    wrong = [
        f"crawl {number}: {text}"
        for number, crawl in enumerate(crawls, 1)
        for text in judge(rules, crawl["statuses"], crawl["errors"])
    ]
    print_hooks(rules, crawls, others)
    print_walls(crawls, others)
    for text in wrong:
        print("not right: " + text)
    sys.exit(1 if wrong else 0)


def read_rules(path):
    rules = {}
    for line in path.read_text().splitlines():
        if line.startswith("#"):
            continue
        hook, alone, page, elsewhere, why = line.split("\t")
        places = {} if elsewhere == "-" else dict(word.split("=") for word in elsewhere.split())
        rules[hook] = {"alone": alone, "page": page.split(), "elsewhere": places, "why": why}
    return rules


def read_crawl(path):
    snapshots, results, runs = (json.loads((path / f"{name}.json").read_text()) for name in ("snapshots", "results", "runs"))
    pages = {snapshot["id"]: page_of(snapshot["url"]) for snapshot in snapshots}
    statuses, errors = defaultdict(dict), {}
    for result in results:
        page = pages.get(result["owner"], SETUP)
        statuses[result["hook"]][page] = result["status"]
        errors[result["hook"], page] = result.get("error")
    return {"statuses": statuses, "errors": errors, "runs": runs, "pages": pages, "seconds": float((path / "seconds").read_text())}


def read_dl(path):
    """What abx-dl wrote; a hook that gave no record of its own is judged by its process."""
    statuses = defaultdict(dict)
    for index in path.glob("*/index.jsonl"):
        records = [json.loads(line) for line in index.read_text(errors="replace").splitlines() if line.strip()]
        records = [record for record in records if record.get("type") in ("Process", "ArchiveResult")]
        for record in sorted(records, key=lambda record: record["type"], reverse=True):
            page = SETUP if "_CrawlSetup__" in record["hook_name"] else index.parent.name.replace("_", "/")
            statuses[record["hook_name"]][page] = record["status"]
    seconds = path / "seconds"
    return {"statuses": statuses, "seconds": float(seconds.read_text()) if seconds.exists() else None}


def page_of(url):
    return urlsplit(url).path.lstrip("/")


def judge(rules, statuses, errors):
    """Every status that is not right, in words."""
    pages = {page for seen in statuses.values() for page in seen} - {SETUP}
    for hook, rule in rules.items():
        seen = statuses.get(hook, {})
        if rule["page"] == ["-"] or hook.startswith("on_BinaryRequest__"):
            continue
        is_setup = hook.startswith("on_CrawlSetup__")
        for page in [SETUP] if is_setup else sorted(pages):
            right = allowed(rule, page)
            # The hooks of a plugin that is disabled have no result.
            status = seen.get(page, "skipped" if rule["alone"] == "key" or is_setup else "no result")
            if right and status not in right:
                yield f"{hook} on {page}: {status}, not {' or '.join(right)}: {errors.get((hook, page)) or 'no error'}"


def allowed(rule, page):
    """The statuses that are right there; none means all."""
    if page in rule["elsewhere"]:
        word = rule["elsewhere"][page]
        return [] if word == "any" else word.split("|")
    if page == SETUP or page == "tour" or page.startswith("page/"):
        return rule["page"]
    return sorted({"succeeded", "noresults", "skipped", *rule["page"]})


def print_hooks(rules, crawls, others):
    """One line a hook: alone, abx-dl, archivist (statuses of all pages and rounds), seconds of CPU and peak of memory."""
    usage = defaultdict(list)
    for crawl in crawls:
        for run in crawl["runs"]:
            if run.get("hook"):
                usage[run["hook"]].append(run)
    width = max(map(len, rules))
    heads = ["alone", "abx-dl", "archivist", "CPU s", "most", "MiB"]
    print(f"{'hook':{width}} {heads[0]:8} {heads[1]:34} {heads[2]:34} {heads[3]:>6} {heads[4]:>6} {heads[5]:>5}")
    for hook, rule in rules.items():
        cpu = [run["cpu_usec"] / 1e6 for run in usage[hook] if run.get("cpu_usec") is not None]
        memory = [run["memory_peak"] / 2**20 for run in usage[hook] if run.get("memory_peak")]
        middle = f"{statistics.median(cpu):.2f}" if cpu else "-"
        most = f"{max(cpu):.2f}" if cpu else "-"
        peak = f"{max(memory):.0f}" if memory else "-"
        print(
            f"{hook:{width}} {rule['alone']:8} {tally(others, hook):34} {tally(crawls, hook):34} {middle:>6} {most:>6} {peak:>5}"
        )


def tally(rounds, hook):
    counts = Counter(status for one in rounds for status in one["statuses"].get(hook, {}).values())
    return ", ".join(f"{number} {status}" for status, number in counts.most_common()) or "-"


def print_walls(crawls, others):
    for name, rounds in (("archivist, one crawl", crawls), ("abx-dl, page by page", others)):
        # A round that is not over has none.
        seconds = [one["seconds"] for one in rounds if one["seconds"] is not None]
        if seconds:
            shown = ", ".join(f"{value:.0f}" for value in seconds)
            print(f"{name}: median {statistics.median(seconds):.0f} s of {len(seconds)} ({shown})")


if __name__ == "__main__":
    main()
