#!/usr/bin/env python3
"""Medians, 99th percentiles and ratios of what bench.py measured: a table, bench.json, bench.svg.

usage: table.py SAMPLES DIRECTORY [KEY=VALUE]...     what is said of the machine and the run goes into bench.json"""
import html
import json
import math
import statistics
import sys

# What the others are set against: the first of these that was measured.
REFERENCES = ("floor", "systemctl stop", "dpkg -i", "abx-dl", "eager picture")
ORDER = ["P%d" % number for number in range(1, 12)]


def read(samples):
    """Groups of contestants that were measured in the same thing, and who was left out."""
    groups, left_out = {}, []
    with open(samples) as file:
        for line in map(json.loads, file):
            if "left_out" in line:
                left_out.append({"figure": line["figure"], "who": line["who"], "why": line["left_out"]})
            elif line["values"]:
                key = (line["figure"], line["what"], line["unit"])
                groups.setdefault(key, {})[line["who"]] = line["values"]
    return [group(*key, groups[key]) for key in sorted(groups, key=lambda key: ORDER.index(key[0]))], left_out


def group(figure, what, unit, contestants):
    reference = next((who for who in REFERENCES if who in contestants), None)
    measured = [measure(who, values, contestants.get(reference), unit == "/s") for who, values in contestants.items()]
    return {"figure": figure, "what": what, "unit": unit, "reference": reference, "contestants": measured}


def measure(who, values, reference, higher_is_better):
    """The 99th percentile is that of the bad ones: of rates, what 99 of 100 reached."""
    ordered = sorted(values, reverse=higher_is_better)
    median = statistics.median(ordered)
    base = statistics.median(reference) if reference else 0
    return {
        "who": who,
        "n": len(ordered),
        "median": round(median, 3),
        "p99": round(ordered[math.ceil(len(ordered) * 0.99) - 1], 3),
        "best": round(ordered[0], 3),
        "ratio": round(median / base, 3) if base > 0 else None,
    }


def number(value):
    return "%.0f" % value if abs(value) >= 1000 else "%.1f" % value if abs(value) >= 10 else "%.2f" % value


def print_table(groups, left_out):
    print("%-62s %10s %10s %8s %6s" % ("", "median", "p99", "ratio", "n"))
    for one in groups:
        print("%-4s%s, %s" % (one["figure"], one["what"], one["unit"]))
        for it in one["contestants"]:
            ratio = "" if it["ratio"] is None else "%.2f" % it["ratio"]
            print("        %-54s %10s %10s %8s %6d" % (it["who"], number(it["median"]), number(it["p99"]), ratio, it["n"]))
    for one in left_out:
        print("%-4swithout %s: %s" % (one["figure"], one["who"], one["why"]))


STYLE = """
text { font: 12px system-ui, sans-serif; fill: #222 } .title { font-weight: 600 } .unit { fill: #666 }
.page { fill: #fff } .bar { fill: #8aa4c0 } .ours { fill: #c2622d } .floor { fill: #5b6570 } .tail { stroke: #222; stroke-width: 1 }
@media (prefers-color-scheme: dark) {
  text { fill: #ddd } .unit { fill: #999 } .page { fill: #181a1c } .bar { fill: #56728f } .ours { fill: #e07f45 } .floor { fill: #8b959f } .tail { stroke: #ddd }
}"""
LABEL, WIDTH, LINE = 190, 420, 18


def plot(groups):
    """Bars for the medians of what several contestants did, each with a line to its 99th percentile."""
    drawn = [one for one in groups if len(one["contestants"]) > 1]
    parts, y = [], 30
    for one in drawn:
        parts.append('<text class="title" x="10" y="%d">%s %s<tspan class="unit">, %s</tspan></text>' % (
            y, one["figure"], html.escape(one["what"]), html.escape(one["unit"])))
        most = scale(one["contestants"])
        for it in one["contestants"]:
            y += LINE
            parts.append(bar(it, y, most, one["reference"]))
        y += LINE + 14
    size = 'width="%d" height="%d" viewBox="0 0 %d %d"' % ((LABEL + WIDTH + 160, y) * 2)
    head = '<svg xmlns="http://www.w3.org/2000/svg" %s role="img" aria-label="archivist and other programs, medians and 99th percentiles">' % size
    return "\n".join([head, "<style>%s\n</style>" % STYLE, '<rect class="page" width="100%" height="100%"/>', *parts, "</svg>", ""])


def scale(contestants):
    """What fills the width: the most, unless that leaves nothing to see of us and the floor."""
    def longest(some):
        return max([max(it["median"], it["p99"]) for it in some], default=0)

    near = longest([it for it in contestants if it["who"] in ("archivist", "floor")])
    return min(longest(contestants), 4 * near) if near else longest(contestants)


def bar(it, y, most, reference):
    def place(value):
        return min(1, max(0, value) / most) * WIDTH if most > 0 else 0

    kind = {"archivist": "ours", "floor": "floor"}.get(it["who"], "bar")
    middle, end = place(it["median"]), place(it["p99"])
    ratio = "" if it["ratio"] is None or it["who"] == reference else " (%.2f × %s)" % (it["ratio"], reference)
    shown = '<text x="{0}" y="{1}" text-anchor="end">{2}</text><rect class="{3}" x="{4}" y="{5}" width="{6:.1f}" height="12"/>'.format(
        LABEL - 8, y, html.escape(it["who"]), kind, LABEL, y - 10, max(1, middle))
    tail = '<line class="tail" x1="{0:.1f}" x2="{1:.1f}" y1="{2}" y2="{2}"/>'.format(LABEL + middle, LABEL + end, y - 4) if end > middle else ""
    value = '<text x="%.1f" y="%d">%s%s</text>' % (LABEL + max(middle, end) + 6, y, number(it["median"]), ratio)
    return shown + tail + value


def main():
    samples, directory, *facts = sys.argv[1:]
    groups, left_out = read(samples)
    print_table(groups, left_out)
    about = dict(fact.split("=", 1) for fact in facts)
    with open(directory + "/bench.json", "w") as file:
        json.dump({"format": 1, "about": about, "figures": groups, "left_out": left_out}, file, indent=1, ensure_ascii=False)
        file.write("\n")
    with open(directory + "/bench.svg", "w") as file:
        file.write(plot(groups))


if __name__ == "__main__":
    main()
