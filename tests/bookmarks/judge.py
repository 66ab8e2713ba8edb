"""Compares what archivist and buku read of bookmark files. usage: judge.py PROGRAM"""

import html
import json
import random
import subprocess
import sys
import tempfile

import buku
from bs4 import BeautifulSoup

FILES = 50
ENTRIES_MAX = 200
HEAD = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks</H1>
"""
WORDS = ["heron", "Straße", "日本語", "naïve", "a & b", "<tag>", 'said "so"', "it's", "emoji 🐦", "C++", "100 %"]


def own(program, text):
    """The entries that archivist reads: address, title and tags."""
    command = [program, "survey", "--lists", "--folders"]
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        done = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    entries = [json.loads(line["entry"]["line"]) for line in lines if "entry" in line]
    return [entry_of(entry["url"], entry["title"], entry["tags"]) for entry in entries]


def others(text):
    """The entries that buku reads, with the names of all folders as tags."""
    found = buku.import_html(BeautifulSoup(text, "html.parser"), True, None, True)
    return [entry_of(entry[0], entry[1], (entry[2] or "").split(",")) for entry in found]


def entry_of(url, title, tags):
    """An entry as both programs have it: buku writes tags in lower case, and sorts them."""
    return url, " ".join((title or "").split()), sorted({tag.strip().lower() for tag in tags if tag.strip()})


def bookmarks(dice):
    """A file as browsers, Pinboard and linkding write it."""
    style = dice.choice(["firefox", "chromium", "flat"])
    title = lambda: html.escape(" ".join(dice.choices(WORDS, k=dice.randint(0, 4))), quote=dice.random() < 0.5)
    lines = [HEAD, "<DL><p>"]
    depth = 0
    for number in range(dice.randint(1, ENTRIES_MAX)):
        turn = dice.random()
        if style != "flat" and turn < 0.1 and depth < 5:
            depth += 1
            lines.append('<DT><H3 ADD_DATE="1600000000">Folder %d</H3>\n<DL><p>' % number)
        elif turn < 0.15 and depth > 0:
            depth -= 1
            lines.append("</DL><p>")
        address = "https://h%d.test/%s" % (number, dice.choice(["", "?a=1&b=2", "#x", "%E6%97%A5", "日本", "a b", "'"]))
        names = ("x%d" % dice.randint(0, 9), "zwei Wörter", "日本")
        tags = ' TAGS="%s"' % ",".join(names[: dice.randint(1, 3)]) if style != "chromium" and dice.random() < 0.5 else ""
        lines.append('<DT><A HREF="%s" ADD_DATE="%d"%s>%s</A>' % (html.escape(address), 1600000000 + number, tags, title()))
        if style != "chromium" and dice.random() < 0.2:
            lines.append("<DD>a description")
    return "\n".join(lines + ["</DL><p>"] * (depth + 1)) + "\n"


def main():
    program = sys.argv[1]
    dice = random.Random(4)
    total = 0
    for number in range(FILES):
        text = bookmarks(dice)
        mine, theirs = own(program, text), others(text)
        for one, other in zip(mine, theirs):
            if one != other:
                sys.exit("file %d: archivist read %r, buku %r" % (number, one, other))
        if len(mine) != len(theirs):
            sys.exit("file %d: archivist read %d entries, buku %d" % (number, len(mine), len(theirs)))
        total += len(mine)
    # The comparison can fail.
    changed = text.replace("https://h0.test/", "https://other.test/", 1)
    if own(program, changed) == theirs:
        sys.exit("the planted fault was not found")
    print("buku reads the same %d entries of %d files" % (total, FILES))


main()
