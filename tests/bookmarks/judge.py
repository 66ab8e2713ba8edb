"""Compares what archivist and two other programs read of bookmark files. usage: judge.py PROGRAM

buku reads addresses, titles and tags. bookmarks-converter reads addresses, titles and dates, and writes them as the files in
which Firefox and Chromium keep them, which archivist then reads.
"""

import html
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import buku
from bookmarks_converter.converters import CONVERTERS
from bs4 import BeautifulSoup

FILES = 50
ENTRIES_MAX = 200
HEAD = """<!DOCTYPE NETSCAPE-Bookmark-file-1>
<META HTTP-EQUIV="Content-Type" CONTENT="text/html; charset=UTF-8">
<TITLE>Bookmarks</TITLE>
<H1>Bookmarks</H1>
"""
WORDS = ["heron", "Straße", "日本語", "naïve", "a & b", "<tag>", 'said "so"', "it's", "emoji 🐦", "C++", "100 %"]


def read(program, text):
    """The entries that archivist reads, as objects."""
    command = [program, "survey", "--lists", "--folders"]
    with tempfile.TemporaryFile() as file:
        file.write(text.encode())
        file.seek(0)
        done = subprocess.run(command, stdin=file, stdout=subprocess.PIPE, check=True)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return [json.loads(line["entry"]["line"]) for line in lines if "entry" in line]


def own(program, text):
    """The entries that archivist reads: address, title and tags."""
    return [entry_of(entry["url"], entry["title"], entry["tags"]) for entry in read(program, text)]


def dated(program, text):
    """The entries that archivist reads, sorted: address, title and date."""
    entries = read(program, text)
    url = lambda entry: entry.get("url", entry.get("uri"))
    title = lambda entry: entry.get("title", entry.get("name")) or ""
    return sorted((url(entry), " ".join(title(entry).split()), entry["bookmarked_at"]) for entry in entries)


def converted(text, browser):
    """The file of a browser with the same entries."""
    with tempfile.TemporaryDirectory() as directory:
        file = pathlib.Path(directory, "in.html")
        file.write_text(text)
        tree = CONVERTERS["chrome"]().from_html(file)
    return json.dumps(CONVERTERS[browser]().as_json(tree))


def others(text):
    """The entries that buku reads, with the names of all folders as tags."""
    found = buku.import_html(BeautifulSoup(text, "html.parser"), True, None, True)
    return [entry_of(entry[0], entry[1], (entry[2] or "").split(",")) for entry in found]


def entry_of(url, title, tags):
    """An entry as both programs have it: buku writes tags in lower case, and sorts them."""
    return url, " ".join((title or "").split()), sorted({tag.strip().lower() for tag in tags if tag.strip()})


def bookmarks(dice, style):
    """A file as a browser, or Pinboard and linkding write it, which are flat."""
    quote = lambda: style == "chromium" or dice.random() < 0.5
    title = lambda: html.escape(" ".join(dice.choices(WORDS, k=dice.randint(0, 4))), quote=quote())
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
    total = dates = 0
    for number in range(FILES):
        style = dice.choice(["firefox", "chromium", "flat"])
        text = bookmarks(dice, style)
        mine, theirs = own(program, text), others(text)
        for one, other in zip(mine, theirs):
            if one != other:
                sys.exit("file %d: archivist read %r, buku %r" % (number, one, other))
        # It reads files line for line, as Chromium writes them.
        if style == "chromium":
            listed, expected = text, dated(program, text)
            for browser in ("firefox", "chrome"):
                found = dated(program, converted(text, browser))
                if found != expected:
                    wrong = sorted(set(found) ^ set(expected))
                    sys.exit("file %d: bookmarks-converter reads it otherwise, for %s: %r" % (number, browser, wrong[:4]))
            dates += len(expected)
        if len(mine) != len(theirs):
            sys.exit("file %d: archivist read %d entries, buku %d" % (number, len(mine), len(theirs)))
        total += len(mine)
    # The comparison can fail.
    changed = text.replace("https://h0.test/", "https://other.test/", 1)
    if own(program, changed) == theirs:
        sys.exit("the planted fault was not found by buku")
    late = listed.replace('ADD_DATE="1600000000"', 'ADD_DATE="1600000009"')
    if dated(program, converted(late, "firefox")) == expected:
        sys.exit("the planted fault was not found by bookmarks-converter")
    print("buku reads the same %d entries of %d files, bookmarks-converter %d" % (total, FILES, dates))


main()
