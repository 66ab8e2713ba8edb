#!/usr/bin/python3
"""Opens what was saved of each page and looks for words and ink: blank.py ROOT SNAPSHOTS RESULTS

ROOT is the root directory of the machine that saved the pages. SNAPSHOTS and RESULTS are files with the answers of
`archivist list snapshots CRAWL --json` and `archivist list results CRAWL --json`.

A result that succeeded is blank if its file cannot be read, if a PDF has no ink or less than a third of the words that the document
shares with few others, if a picture or its lower half has one colour, or if a document has no words. A PDF of which the hook says
that it lacks text is blank, too. Prints these, results that met a time limit, counts of
other results that did not succeed, and one line of counts that begins with "figure: ". Status 1 if there is a blank result, a
time limit, or a page without a PDF, a picture and a document that succeeded.

Requires pdftotext and pdftoppm of poppler-utils, and Pillow (python3-pil).
"""

import collections
import concurrent.futures
import contextlib
import html.parser
import io
import json
import os
import pathlib
import re
import subprocess
import sys

import PIL.Image

# Share of pixels that are not of the most frequent brightness. A line of twenty words on an empty screen has 0.002.
LEAST_INK = 0.0005
# Share of the different words of a document that its PDF must have. Some parts of a document are not shown: closed ones, other tabs.
LEAST_WORDS = 1 / 3
# Words that so many documents have are not compared: style sheets for print hide menus and search boxes, and the pages of a site have
# the same hidden parts. With fewer words left, nothing is compared, and nothing in pages with a query, most of whose words may be in
# tabs that are not shown.
COMMON_FROM = 4
COMPARED_FROM = 15
# What the hook says of a PDF that lacks text.
LACKS_TEXT = re.compile(r"the PDF has \d+ of \d+ letters")
# Pages of a PDF that are drawn: the first shows whether there is ink, and some begin with an empty one.
DRAWN_PAGES = 3
NEEDED = ("pdf", "screenshot", "dom")
TIME_LIMIT = re.compile(r"time limit|timed out|timeout|took longer|not within", re.IGNORECASE)
# Full-page screenshots have more pixels than Pillow expects of an honest picture.
PIL.Image.MAX_IMAGE_PIXELS = None


class Text(html.parser.HTMLParser):
    """The text that a document can show, without its menus, which are not printed."""

    UNSEEN = ("script", "style", "template", "title", "noscript", "nav")

    def __init__(self):
        super().__init__()
        # The element that is left out, and how many of its name are open.
        self.unseen, self.depth, self.parts = None, 0, []

    def handle_starttag(self, tag, attributes):
        if self.unseen is None and (tag in self.UNSEEN or ("role", "navigation") in attributes):
            self.unseen = tag
        self.depth += tag == self.unseen

    def handle_endtag(self, tag):
        self.depth -= tag == self.unseen
        if not self.depth:
            self.unseen = None

    def handle_data(self, data):
        if self.unseen is None:
            self.parts.append(data)


class Blank(Exception):
    """Why a file is blank."""


def words(text):
    return re.findall(r"\w+", text)


def words_of_document(path):
    parser = Text()
    parser.feed(path.read_text(encoding="utf-8", errors="replace"))
    # Inline elements do not separate words, but a word in parts would be counted as missing.
    found = words(" ".join(parser.parts))
    if not found:
        raise Blank("no words")
    return found


def ink(picture):
    """Share of the pixels that are not of the most frequent brightness."""
    counts = picture.convert("L").histogram()
    return 1 - max(counts) / sum(counts)


def output_of(*command):
    done = subprocess.run(command, capture_output=True)
    if done.returncode:
        raise Blank("%s: %s" % (command[0], done.stderr.decode(errors="replace").strip()[-200:]))
    return done.stdout


def look_at_pdf(path, wanted):
    """Number of its words, and share of these different words of the document that it has."""
    found = words(output_of("pdftotext", path, "-").decode(errors="replace"))
    if not found:
        raise Blank("no words")
    drawn = output_of("pdftoppm", "-gray", "-r", "24", "-l", str(DRAWN_PAGES), path)
    if max(ink(page) for page in pictures_in(drawn)) < LEAST_INK:
        raise Blank("no ink")
    share = len(wanted & set(found)) / len(wanted) if len(wanted) >= COMPARED_FROM else 1
    if share < LEAST_WORDS:
        raise Blank("%d of %d words of the document" % (len(wanted & set(found)), len(wanted)))
    return len(found), share


def pictures_in(stream):
    """The pages that pdftoppm prints: portable graymaps, one after another."""
    while stream:
        width, height = map(int, re.match(rb"P5\n(\d+) (\d+)\n255\n", stream).groups())
        size = len(b"P5\n%d %d\n255\n" % (width, height)) + width * height
        yield PIL.Image.open(io.BytesIO(stream[:size]))
        stream = stream[size:]


def look_at_picture(path):
    """Share of its ink."""
    try:
        # As a file: Pillow would resolve the link to the root directory of another machine.
        with path.open("rb") as file, PIL.Image.open(file) as picture:
            picture.load()
            share = ink(picture)
            half = ink(picture.crop((0, picture.height // 2, picture.width, picture.height)))
            height = picture.height
    except (PIL.UnidentifiedImageError, SyntaxError) as error:
        raise Blank(str(error)) from error
    except OSError as error:
        raise Blank(error.strerror or str(error)) from error
    if share < LEAST_INK:
        raise Blank("no ink")
    # A page may end in the upper half of its first screen.
    if height > 2000 and half < LEAST_INK:
        raise Blank("no ink in the lower half of %d pixels" % height)
    return share


def look_at_page(directory, succeeded, common, has_query):
    """Facts about the files of a page, and what is blank as (plugin, reason)."""
    facts, blank, document = {}, [], []

    def look(plugin, name, function, *more):
        path = directory / plugin / name
        try:
            path.stat()
            return function(path, *more)
        except Blank as error:
            blank.append((plugin, "%s: %s" % (name, error)))
        except OSError as error:
            blank.append((plugin, "%s: %s" % (name, error.strerror)))
        return None

    if "dom" in succeeded:
        document = look("dom", "output.html", words_of_document) or []
    if "pdf" in succeeded:
        facts["pdf"] = look("pdf", "output.pdf", look_at_pdf, set() if has_query else set(document) - common)
    if "screenshot" in succeeded:
        facts["picture"] = look("screenshot", "screenshot.png", look_at_picture)
        look("screenshot", "thumbnail.webp", look_at_picture)
    if "wget" in succeeded:
        look("wget", succeeded["wget"] or "", words_of_document)
    return facts, blank


def main():
    root = pathlib.Path(sys.argv[1])
    snapshots, results = (json.loads(pathlib.Path(name).read_text()) for name in sys.argv[2:4])
    of_page = collections.defaultdict(list)
    for result in results:
        of_page[result["owner"]].append(result)

    def directory(snapshot):
        return root / snapshot["directory"].lstrip("/")

    counts = collections.Counter()
    for snapshot in snapshots:
        if snapshot["directory"]:
            with contextlib.suppress(Blank, OSError):
                counts.update(set(words_of_document(directory(snapshot) / "dom/output.html")))
    common = {word for word, count in counts.items() if count >= COMMON_FROM}

    def look(snapshot):
        succeeded = {one["plugin"]: one["output"] for one in of_page[snapshot["id"]] if one["status"] == "succeeded"}
        # A page that was never started has no directory.
        found = look_at_page(directory(snapshot), succeeded, common, "?" in snapshot["url"]) if snapshot["directory"] else ({}, [])
        return found, set(NEEDED) - set(succeeded)

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        looks = list(pool.map(look, snapshots))
    blank = late = incomplete = 0
    for snapshot, ((_, found), missing) in zip(snapshots, looks):
        for plugin, reason in found:
            print("blank: %s %s: %s: %s" % (snapshot["id"], snapshot["url"], plugin, reason))
        if missing:
            print("incomplete: %s %s: no %s" % (snapshot["id"], snapshot["url"], ", ".join(sorted(missing))))
        blank += len(found)
        incomplete += bool(missing)
    others, notes = collections.Counter(), 0
    for result in results:
        notes += result["status"] == "succeeded" and result["error"] is not None
        if result["status"] == "succeeded" and LACKS_TEXT.search(result["error"] or ""):
            blank += 1
            print("blank: %s %s: %s" % (result["owner"], result["plugin"], result["error"]))
        if TIME_LIMIT.search("%s %s" % (result["error"], result["output"])):
            late += 1
            print("time limit: %s %s: %s" % (result["owner"], result["plugin"], result["error"] or result["output"]))
        if result["status"] != "succeeded":
            others["%s %s: %s" % (result["plugin"], result["status"], result["error"])] += 1
    for what, count in others.most_common():
        print("%d times %s" % (count, what))
    pdfs = [facts["pdf"] for (facts, _), _ in looks if facts.get("pdf")]
    pictures = [facts["picture"] for (facts, _), _ in looks if facts.get("picture")]
    print("figure: %d pages, %d results, %d not succeeded, %d with a note, %d time limits, %d blank; "
          "%d PDFs with %d words, at least %.0f %% of a page; %d pictures, ink at least %.2f %%" % (
              len(snapshots), len(results), sum(others.values()), notes, late, blank,
              len(pdfs), sum(count for count, _ in pdfs), 100 * min((share for _, share in pdfs), default=0),
              len(pictures), 100 * min(pictures, default=0)))
    sys.exit(bool(blank or late or incomplete or not snapshots))


if __name__ == "__main__":
    main()
