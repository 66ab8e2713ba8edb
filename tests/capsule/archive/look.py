"""Looks at what a snapshot's directory holds: look.py DIRECTORY URL [TITLE]

Every file is what its plugin promises, by its content and not by its name. Prints what is wrong; status 1 if anything is.
"""

import gzip
import json
import pathlib
import struct
import sys

directory, url = pathlib.Path(sys.argv[1]), sys.argv[2]
title = sys.argv[3] if len(sys.argv) > 3 else None
wrong = []


def check(right, what):
    if not right:
        wrong.append(what)


def read(name):
    path = directory / name
    return path.read_bytes() if path.is_file() else b""


def screenshot():
    data = read("screenshot/screenshot.png")
    check(data[:8] == b"\x89PNG\r\n\x1a\n" and data.endswith(b"IEND\xaeB`\x82"), "screenshot.png is no whole PNG")
    if len(data) > 24:
        width, height = struct.unpack(">II", data[16:24])
        check(width >= 1024 and height >= 600, f"screenshot of {width}x{height}")
        check(len(data) > 5000, f"screenshot of {len(data)} bytes: a blank page?")


def pdf():
    data = read("pdf/output.pdf")
    check(data.startswith(b"%PDF-1.") and b"%%EOF" in data[-64:], "output.pdf is no whole PDF")
    check(b"/Page" in data and len(data) > 3000, "output.pdf has no page")


def dom():
    data = read("dom/output.html").lower()
    check(b"<html" in data and b"</html>" in data and b"<h1>" in data, "output.html is no page")


def warc():
    files = list((directory / "wget/warc").glob("*.warc.gz"))
    check(len(files) == 1, f"{len(files)} WARC files")
    for file in files:
        text = gzip.decompress(file.read_bytes())
        check(text.startswith(b"WARC/1."), "no WARC")
        records = text.split(b"WARC-Type: ")
        check(any(record.startswith(b"response") and url.encode() in record for record in records), "no response in the WARC")
        check(any(record.startswith(b"request") for record in records), "no request in the WARC")


def index():
    lines = [json.loads(line) for line in read("index.jsonl").splitlines()]
    check(lines and lines[0]["type"] == "Snapshot" and lines[0]["url"] == url, "index.jsonl does not begin with the snapshot")
    results = {line["plugin"]: line for line in lines if line["type"] == "ArchiveResult"}
    expected = set("wget favicon headers chromium screenshot pdf dom title outlinks hashes testrefuse".split())
    check(set(results) == expected, f"results of {sorted(set(results) ^ expected)} missing or too many in index.jsonl")
    for plugin, line in results.items():
        for file in line["output_files"]:
            path = directory / plugin / file["path"]
            check(path.is_file() and path.stat().st_size == file["size"], f"{plugin}/{file['path']} is not as index.jsonl says")
    if title is not None:
        check(results["title"]["output_str"] == title, f"title {results['title']['output_str']!r}")
        check(read("title/title.txt").decode().rstrip("\n") == title, "title.txt")


for look in (screenshot, pdf, dom, warc, index):
    look()
check(json.loads(read("headers/headers.json") or b"{}"), "headers.json is empty")
check(read("favicon/favicon.ico")[:4] == b"\0\0\1\0", "favicon.ico is no icon")
print("\n".join(f"{directory}: {what}" for what in wrong))
sys.exit(bool(wrong))
