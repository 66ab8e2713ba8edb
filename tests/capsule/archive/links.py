"""Follows the links of an archive's pages: links.py [--alone] DIRECTORY

Every link and picture of every page that archivist wrote leads to a file, and pages to pages of the archive only; what was saved is
not opened. The links of a snapshot to older and newer ones are an object, whose file may be missing. With --alone the directory is
one snapshot, whose ways up lead nowhere. Prints what is wrong; status 1 if anything is.
"""

import html.parser
import pathlib
import sys
import urllib.parse

alone = "--alone" in sys.argv
top = pathlib.Path(sys.argv[-1]).resolve()
wrong, seen, files = [], set(), 0


class Links(html.parser.HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.page, self.found = page, []

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        if tag in ("script", "iframe", "embed", "form", "base", "link"):
            wrong.append(f"{self.page}: <{tag}>")
        if tag == "object":
            shown = pathlib.Path(self.page.parent, attributes["data"]).resolve()
            if attributes["type"] != "text/html" or shown.parts[-4] != "urls":
                wrong.append(f"{self.page}: an object from {shown}")
            if shown.exists():
                self.found.append((attributes["data"], tag))
        for name in attributes:
            if name.startswith("on"):
                wrong.append(f"{self.page}: {name}=")
        is_up = attributes.get("rel") == "up"
        for target in (attributes.get("href"), attributes.get("src")):
            if target is not None and not (alone and is_up):
                self.found.append((target, tag))


def follow(page):
    global files
    if page in seen:
        return
    seen.add(page)
    parser = Links(page)
    parser.feed(page.read_text())
    for target, tag in parser.found:
        # As a browser does it: against the address of the page.
        url = urllib.parse.urlsplit(urllib.parse.urljoin(page.as_uri(), target))
        if url.scheme in ("http", "https") and tag == "a":
            continue
        is_part = url.fragment and page.parts[-4] == "urls" and tag == "a"
        if url.scheme != "file" or url.netloc or url.query or url.fragment and not is_part:
            wrong.append(f"{page}: {target!r} is {url}")
            continue
        path = pathlib.Path(urllib.parse.unquote(url.path))
        if not path.is_file() or not path.resolve().is_relative_to(top):
            wrong.append(f"{page}: {target!r} leads to {str(path)!r}")
            continue
        files += 1
        ours = path.name in ("index.html", "days.html") or path.name.startswith("page-")
        # DAY/DOMAIN/ID/index.html is the deepest page of ours.
        if tag == "object":
            follow(path)
        if tag == "a" and ours and len(path.relative_to(top).parts) <= (1 if alone else 4):
            follow(path)


follow(top / "index.html")
print("\n".join(wrong))
print(f"{len(seen)} pages, {files} links to files")
sys.exit(bool(wrong) or files < 5)
