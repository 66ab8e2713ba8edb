#!/usr/bin/env python3
"""Follows the links of the page about a snapshot, as a browser does that opens it as a file.

usage: versions.py DIRECTORY; prints the ids of the next older and newer snapshot, and of those on the list, newest first; "none" where
there is no link
"""

import html.parser
import os
import sys
import urllib.parse


class Page(html.parser.HTMLParser):
    """The links of a page, as pairs of their relation and the file."""

    def __init__(self, path):
        super().__init__()
        self.directory = os.path.dirname(path)
        self.objects, self.links, self.cards = [], {}, []
        with open(path, encoding="utf-8") as file:
            self.feed(file.read())

    def file(self, link):
        path = urllib.parse.unquote(urllib.parse.urlsplit(link).path)
        return os.path.normpath(os.path.join(self.directory, path))

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag == "object":
            self.objects.append(self.file(attrs["data"]))
        elif tag == "a" and attrs.get("target") == "_top":
            self.links[attrs["rel"]] = self.file(attrs["href"])
        elif tag == "a" and attrs.get("class") == "card":
            self.cards.append(self.file(attrs["href"]))
            assert attrs["id"] == snapshot(self.cards[-1]), attrs


def snapshot(path):
    """The id of the snapshot whose page this is."""
    assert os.path.isfile(path) and os.path.basename(path) == "index.html", path
    return os.path.basename(os.path.dirname(path))


(shown,) = Page(os.path.join(sys.argv[1], "index.html")).objects
if not os.path.exists(shown):
    print("none none none")
    sys.exit()
links = Page(shown).links
ids = [snapshot(links[rel]) if rel in links else "none" for rel in ("prev", "next")]
print(*ids, ",".join(map(snapshot, Page(links["up"]).cards)))
