#!/usr/bin/env python3
"""Measures figures inside a capsule. Each measurement is a line of JSON in the file given: figure, contestant, what, unit, values.

usage: bench.py [--quick] FILE FIGURE...

Status 1 when something did not work. Nothing fails for being slow."""
import json
import random
import sys
import time
import traceback

import commands
import crawl
import ends
import hooks
import idle
import lazy
import pages
from machine import Failed, give_up, journal

FIGURES = {
    "P1": hooks.one_by_one,
    "P2": hooks.eight_at_once,
    "P4": idle.idle,
    "P5": pages.queued,
    "P6": ends.cancel,
    "P7": ends.restart,
    "P8": commands.answers,
    "P9": crawl.ten_pages,
    "P10": commands.install,
    "P11": lazy.pairs,
}


class Notes:
    """What was measured so far."""

    def __init__(self, file, quick):
        self.file = file
        self.quick = quick

    def counts(self, quick, full):
        return quick if self.quick else full

    def note(self, figure, who, what, unit, values):
        with open(self.file, "a") as file:
            line = {"figure": figure, "who": who, "what": what, "unit": unit, "values": values}
            file.write(json.dumps(line) + "\n")

    def left_out(self, figure, who, why):
        with open(self.file, "a") as file:
            file.write(json.dumps({"figure": figure, "who": who, "left_out": why}) + "\n")


def interleave(contestants, rounds):
    """Every contestant once a round, in an order of its own: what else the machine does meets all of them."""
    for _ in range(rounds):
        for contestant in random.sample(contestants, len(contestants)):
            contestant()


def main():
    arguments = sys.argv[1:]
    quick = "--quick" in arguments
    file, *figures = [word for word in arguments if word != "--quick"]
    notes, failed = Notes(file, quick), False
    for figure in figures:
        began = time.monotonic()
        try:
            FIGURES[figure](notes, interleave)
        except Exception as error:
            why = error if isinstance(error, Failed) else traceback.format_exc()
            print("failed: %s: %s" % (figure, why), file=sys.stderr)
            failed = True
            print(journal(), file=sys.stderr)
            give_up()
        print("%s: %.0f s" % (figure, time.monotonic() - began), file=sys.stderr, flush=True)
    sys.exit(failed)


if __name__ == "__main__":
    main()
