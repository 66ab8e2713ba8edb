#!/usr/bin/env python3
"""Judges recordings with programs of others.

usage: judge.py RECORDING DIRECTORY     RECORDING is the program that writes, reads and checks them
       judge.py --pywb                  answers the paths on standard input from the collection in the working directory
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
import zlib

import surt
from cdxj_indexer.main import CDXJIndexer
from wacz.main import main as wacz_main
from warcio.archiveiterator import ArchiveIterator

DATA = "archive/data.warc.gz"
INDEX = "indexes/index.cdx.gz"
PAGES = "pages/pages.jsonl"
PACKAGE = "datapackage.json"
# A judge if it is installed: cargo install --locked --features bin warcat
WARCAT = shutil.which("warcat", path=os.pathsep.join([os.environ["PATH"], os.path.expanduser("~/.cargo/bin")]))


def run(*words):
    """The lines that the program prints, and its status."""
    done = subprocess.run(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    return done.stdout.splitlines() + done.stderr.splitlines(), done.returncode


def members(path):
    with zipfile.ZipFile(path) as file:
        return {name: file.read(name) for name in file.namelist()}


def repacked(files, path):
    """A WACZ with these files, whose digests are right again."""
    package = json.loads(files[PACKAGE])
    for resource in package["resources"]:
        content = files[resource["path"]]
        resource["bytes"] = len(content)
        resource["hash"] = "sha256:" + hashlib.sha256(content).hexdigest()
    files = dict(files)
    files[PACKAGE] = json.dumps(package).encode()
    digest = {"path": PACKAGE, "hash": "sha256:" + hashlib.sha256(files[PACKAGE]).hexdigest()}
    files["datapackage-digest.json"] = json.dumps(digest).encode()
    with zipfile.ZipFile(path, "w") as file:
        for name, content in files.items():
            file.writestr(name, content)


def records(warc):
    """What warcio reads of each record, with the digests compared."""
    found = []
    for record in ArchiveIterator(io.BytesIO(warc), check_digests="raise", verify_http=True):
        content = record.content_stream().read()
        headers = record.rec_headers
        found.append(
            {
                "kind": record.rec_type,
                "url": headers.get_header("WARC-Target-URI"),
                "status": int(record.http_headers.get_statuscode()) if record.rec_type == "response" else None,
                "sha256": hashlib.sha256(content).hexdigest(),
                "length": record.http_headers.get_header("Content-Length") if record.http_headers else None,
                "stored": str(len(content)),
                "digests": [headers.get_header(f"WARC-{part}-Digest") for part in ("Payload", "Block")],
            }
        )
    return found


def judge_warcio(files, written):
    """Each record is the one that was recorded, and its digests are those of its bytes."""
    found = records(files[DATA])
    answers = [record for record in found if record["kind"] in ("response", "resource")]
    assert len(answers) == len(written), f"{len(answers)} of {len(written)} records"
    for record, expected in zip(answers, written):
        for name, value in expected.items():
            assert name == "method" or record[name] == value, f"{name} of {expected['url']}: {record[name]}"
        assert all(record["digests"]), f"no digest: {expected['url']}"
        assert record["length"] in (None, record["stored"]), f"Content-Length of {expected['url']}"
        payload = "sha256:" + record["sha256"]
        assert record["digests"][0] == payload, f"payload digest of {expected['url']}"
    requests = sum(record["kind"] == "request" for record in found)
    assert requests == sum(answer["kind"] == "response" for answer in answers), f"{requests} requests"


def judge_wacz(path):
    """wacz validate accepts the file."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        status = wacz_main(["validate", "-f", path])
    assert status == 0, output.getvalue()


def judge_warcat(files, directory, is_cut):
    """warcat finds no fault in the records. Those of a recording that was cut off may refer to one that is not there."""
    path = os.path.join(directory, "warcat.warc.gz")
    with open(path, "wb") as file:
        file.write(files[DATA])
    left_out = ["--exclude-check", "concurrent-to"] if is_cut else []
    lines, status = run(WARCAT, "--quiet", "verify", *left_out, "--format", "jsonl", "--input", path)
    assert status == 0 and not lines, lines[0] if lines else f"status {status}"


def index_lines(text):
    lines = {}
    for line in text.splitlines():
        if line and not line.startswith("!"):
            key, time, fields = line.split(" ", 2)
            fields = json.loads(fields)
            # cdxj-indexer lists the record that describes the file, too.
            if "url" in fields:
                lines[int(fields["offset"])] = (key, time, fields)
    return lines


def judge_index(files, directory):
    """The index is what cdxj-indexer makes of the records."""
    path = os.path.join(directory, "data.warc.gz")
    with open(path, "wb") as file:
        file.write(files[DATA])
    output = os.path.join(directory, "index.cdxj")
    CDXJIndexer(output, [path], post_append=True, sort=True).process_all()
    with open(output, encoding="utf-8") as file:
        theirs = index_lines(file.read())
    text = gzip.decompress(files[INDEX]).decode()
    ours = index_lines(text)
    assert text.splitlines() == sorted(text.splitlines()), "not in order"
    assert ours.keys() == theirs.keys(), f"records at {ours.keys() ^ theirs.keys()}"
    for offset, (key, time, fields) in theirs.items():
        assert ours[offset][:2] == (key, time), f"{ours[offset][:2]}, not {(key, time)}"
        for name in ("url", "mime", "status", "digest", "length", "filename", "method", "requestBody"):
            value = ours[offset][2].get(name)
            assert value == (fields.get(name) or None), f"{name} of {key}: {value}, not {fields.get(name)}"
    # Each part of the index is where the list of parts says.
    for line in files["indexes/index.idx"].decode().splitlines()[1:]:
        fields = json.loads(line[line.index("{") :])
        part = files[INDEX][fields["offset"] : fields["offset"] + fields["length"]]
        assert gzip.decompress(part).decode().startswith(line.split(" {")[0]), line


# Fields of records as ISO 28500 writes them.
GRAMMAR = {
    "WARC-Record-ID": r"<urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}>",
    "WARC-Date": r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?Z",
    "WARC-Target-URI": r"[a-z]+:[!#-;=?-Z\[\]_a-z|~{}]+",
    "WARC-Concurrent-To": r"<urn:uuid:[0-9a-f-]+>",
}


def judge_grammar(files):
    for record in unpacked(files[DATA]):
        head = record.split(b"\r\n\r\n", 1)[0].decode()
        lines = head.split("\r\n")
        assert lines[0] == "WARC/1.1", lines[0]
        for line in lines[1:]:
            name, value = line.split(": ", 1)
            assert re.fullmatch(GRAMMAR.get(name, ".+"), value), line
        if "WARC-Type: response" in lines:
            _, http, body = record.split(b"\r\n\r\n", 2)
            if re.search(rb"\ncontent-encoding: gzip\b", http, re.IGNORECASE):
                gzip.decompress(body[:-4])


def judge_pages(files):
    urls = {fields["url"] for _, _, fields in index_lines(gzip.decompress(files[INDEX]).decode()).values()}
    pages = [json.loads(line) for line in files[PAGES].decode().splitlines()[1:]]
    assert pages and all(page["url"] in urls and page["ts"] for page in pages), "pages"


def answer_by_pywb():
    """What pywb answers to each path: status and SHA-256, one JSON object a line. pywb changes the socket module of its process."""
    from gevent import monkey

    monkey.patch_all(thread=False)
    from pywb.apps.frontendapp import FrontEndApp

    app = FrontEndApp(config_file=None)
    for path in sys.stdin.read().splitlines():
        name, _, query = path.partition("?")
        status = []
        environment = {
            "REQUEST_METHOD": "GET",
            "SCRIPT_NAME": "",
            "PATH_INFO": name,
            "QUERY_STRING": query,
            "REQUEST_URI": path,
            "SERVER_NAME": "localhost",
            "SERVER_PORT": "80",
            "HTTP_HOST": "localhost",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "wsgi.url_scheme": "http",
            "wsgi.input": io.BytesIO(),
            "wsgi.errors": sys.stderr,
        }
        body = b"".join(app(environment, lambda line, *_: status.append(int(line.split()[0]))))
        print("pywb", json.dumps({"status": status[0], "sha256": hashlib.sha256(body).hexdigest()}))


def judge_pywb(files, written, directory, others=()):
    """pywb finds each page in our index, and answers with the body that was recorded, or that of other files."""
    collection = os.path.join(directory, "pywb", "collections", "all")
    index = gzip.decompress(files[INDEX])
    parts = {"archive/data.warc.gz": files[DATA]}
    if others:
        output = os.path.join(directory, "others.cdxj")
        CDXJIndexer(output, list(others), sort=True).process_all()
        with open(output, "rb") as file:
            index = b"".join(sorted((index + file.read()).splitlines(keepends=True)))
    for path in others:
        with open(path, "rb") as file:
            parts["archive/" + os.path.basename(path)] = file.read()
    for name, content in {**parts, "indexes/index.cdxj": index}.items():
        path = os.path.join(collection, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb") as file:
            file.write(content)
    pages = [answer for answer in written if answer["kind"] == "response" and answer["method"] == "GET"]
    # Keys of other URLs are the same, and pywb takes any of their records.
    keys = [surt.surt(page["url"]) for page in pages]
    pages = [page for page in pages if keys.count(surt.surt(page["url"])) == 1]
    paths = "".join(f"/all/20261126095340id_/{page['url']}\n" for page in pages)
    done = subprocess.run(
        [sys.executable, os.path.abspath(__file__), "--pywb"],
        cwd=os.path.join(directory, "pywb"),
        input=paths,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        timeout=300,
        check=False,
    )
    answers = [json.loads(line.split(" ", 1)[1]) for line in done.stdout.splitlines() if line.startswith("pywb {")]
    assert len(answers) == len(pages) > 20, f"{len(answers)} of {len(pages)} answers: {done.stderr[-500:]}"
    for page, answer in zip(pages, answers):
        expected = {"status": page["status"], "sha256": page["sha256"]}
        assert answer == expected, f"{page['url']}: {answer}, expected {expected}"


def judge_shared(path, bodies, written, directory):
    """A recording whose bodies are in other files is one for other programs, which answer from all of them."""
    files = members(path)
    judge_wacz(path)
    judge_index(files, directory)
    judge_grammar(files)
    judge_pages(files)
    revisits = [record for record in records(files[DATA]) if record["kind"] == "revisit"]
    assert len(revisits) >= 2, f"{len(revisits)} revisits"
    others = []
    for name in sorted(os.listdir(bodies)):
        others.append(os.path.join(bodies, name))
        with open(others[-1], "rb") as file:
            (record,) = records(file.read())
        assert name == record["sha256"] + ".warc.gz", name
    digests = {record["digests"][0] for record in revisits}
    assert digests == {"sha256:" + os.path.basename(other).split(".")[0] for other in others}
    judge_pywb(files, written, directory, others)


def verdicts(path, written, directory, is_cut=False):
    """What is wrong with a file, by judge."""
    found = {}
    files = {}

    def judge(name, function, *arguments):
        try:
            function(*arguments)
        except Exception as error:  # pylint: disable=broad-except
            found[name] = str(error).strip().splitlines()[-1:] or [type(error).__name__]

    def unpack():
        files.update(members(path))

    judge("zip", unpack)
    judge("wacz", judge_wacz, path)
    if files:
        judge("warcio", judge_warcio, files, written)
        if WARCAT:
            judge("warcat", judge_warcat, files, directory, is_cut)
        judge("cdxj-indexer", judge_index, files, directory)
        judge("grammar", judge_grammar, files)
        judge("pages", judge_pages, files)
    return found


def unpacked(warc):
    """The records of a WARC file, one after another."""
    found, rest = [], warc
    while rest:
        decoder = zlib.decompressobj(31)
        found.append(decoder.decompress(rest) + decoder.flush())
        rest = decoder.unused_data
    return found


def with_record(files, number, change):
    """The files with one changed record, and an index whose places are right."""
    all_records = unpacked(files[DATA])
    all_records[number] = change(all_records[number])
    packed, places = [], {}
    old = new = 0
    for record, before in zip(all_records, unpacked(files[DATA])):
        member = gzip.compress(record, mtime=0)
        places[old] = (new, len(member))
        old += before_length(files[DATA], old)
        new += len(member)
        packed.append(member)
    lines = []
    for line in gzip.decompress(files[INDEX]).decode().splitlines():
        key, time, fields = line.split(" ", 2)
        fields = json.loads(fields)
        offset, length = places[int(fields["offset"])]
        fields.update(offset=str(offset), length=str(length))
        lines.append(f"{key} {time} {json.dumps(fields)}")
    return {**files, DATA: b"".join(packed), **index_of(lines)}


def before_length(warc, offset):
    decoder = zlib.decompressobj(31)
    rest = warc[offset:]
    decoder.decompress(rest)
    return len(rest) - len(decoder.unused_data)


def index_of(lines):
    """The files of an index with these lines."""
    packed = gzip.compress(("\n".join(lines) + "\n").encode(), mtime=0)
    place = json.dumps({"offset": 0, "length": len(packed)})
    parts = f'!meta 0 {{"format": "cdxj-gzip-1.0"}}\n{lines[0].split(" {")[0]} {place}\n'
    return {INDEX: packed, "indexes/index.idx": parts.encode()}


def edited(files, number, **fields):
    """The files with changed fields of an index line."""
    lines = gzip.decompress(files[INDEX]).decode().splitlines()
    key, time, old = lines[number].split(" ", 2)
    lines[number] = f"{key} {time} {json.dumps({**json.loads(old), **fields})}"
    return {**files, **index_of(lines)}


def lost(files, number):
    lines = gzip.decompress(files[INDEX]).decode().splitlines()
    del lines[number]
    return {**files, **index_of(lines)}


def replaced(old, new):
    def change(record):
        assert old in record, record[:400]
        return record.replace(old, new, 1)

    return change


def digested(head, block):
    """The head of a record with the digests of a block: only what the block says is wrong."""
    payload = block.split(b"\r\n\r\n", 1)[1]
    for name, content in ((b"Block", block), (b"Payload", payload)):
        digest = hashlib.sha256(content).hexdigest().encode()
        head = re.sub(name + b"-Digest: sha256:[0-9a-f]+", name + b"-Digest: sha256:" + digest, head)
    return head


def longer(old, new):
    """A change in the block of a record, whose length and digests follow."""

    def change(record):
        head, block = record.split(b"\r\n\r\n", 1)
        length = len(block) - 4
        changed = replaced(old, new)(block)
        before, after = (b"Content-Length: %d" % (length + add) for add in (0, len(changed) - len(block)))
        return replaced(before, after)(digested(head, changed[:-4])) + b"\r\n\r\n" + changed

    return change


def planted(files):
    """Files with one fault each."""
    page, redirect = 1, 5
    yield "body exchanged", with_record(files, page, replaced(b"<title>A page", b"<title>B page"))
    zeros = b"WARC-Payload-Digest: sha256:00\r\nX-Was: "
    yield "impossible digest", with_record(files, page, replaced(b"WARC-Payload-Digest: ", zeros))
    uri = b"WARC-Target-URI: https://page.test/\r\n"
    yield "angle brackets", with_record(files, page, replaced(uri, b"WARC-Target-URI: <https://page.test/>\r\n"))
    coding = (b"content-type: text/html", b"content-encoding: gzip\r\ncontent-type: text/html")
    yield "coding that the body has not", with_record(files, page, longer(*coding))
    yield "length that the body has not", with_record(files, page, longer(b"\nContent-Length: 1", b"\nContent-Length: 2"))
    yield "redirect changed", with_record(files, redirect, longer(b"HTTP/1.1 302", b"HTTP/1.1 200"))
    yield "end cut off", {**files, DATA: files[DATA][:-30]}
    yield "resource without index line", lost(files, 3)
    yield "index line without record", edited(files, 0, offset="7")
    yield "length of an index line", edited(files, 0, length="99")
    yield "page that was not recorded", {**files, PAGES: files[PAGES].replace(b"https://page.test/", b"https://other.test/")}
    yield "record missing", {**files, DATA: files[DATA][before_length(files[DATA], 0) :]}


def main():
    program, directory = sys.argv[1:]
    good = os.path.join(directory, "good.wacz")
    lines, status = run(program, "write", good)
    assert status == 0, lines
    written = [json.loads(line) for line in lines]
    failures = [f"good: {name}: {reason}" for name, reason in verdicts(good, written, directory).items()]
    lines, status = run(program, "check", good)
    failures += [f"good: check: {line}" for line in lines]

    try:
        judge_pywb(members(good), written, directory)
    except AssertionError as error:
        failures.append(f"good: pywb: {error}")

    apart = os.path.join(directory, "apart")
    shared, bodies = (os.path.join(apart, name) for name in ("shared.wacz", "bodies"))
    os.makedirs(bodies)
    lines, status = run(program, "share", good, shared, bodies)
    assert status == 0, lines
    try:
        judge_shared(shared, bodies, written, apart)
    except AssertionError as error:
        failures.append(f"shared: {error}")

    # The keys of all URLs.
    lines, _ = run(program, "read", good)
    for entry in map(json.loads, lines):
        if entry["kind"] == "entry" and entry["method"] == "GET" and entry["key"] != surt.surt(entry["url"]):
            failures.append(f"key {entry['key']}, surt says {surt.surt(entry['url'])}")

    # A file of wacz create with the same records has the same answers.
    theirs = os.path.join(directory, "theirs.wacz")
    warc = os.path.join(directory, "data.warc.gz")
    with contextlib.redirect_stdout(io.StringIO()):
        wacz_main(["create", "-o", theirs, "--detect-pages", warc])
    answers = lambda lines: sorted((e["url"], e["sha256"]) for e in map(json.loads, lines) if e["kind"] == "entry")
    their_lines, status = run(program, "read", theirs)
    if status != 0 or answers(their_lines) != answers(lines):
        failures.append(f"a file of wacz create is read differently: {their_lines[:1]}")

    # A file with the records of several, of which one was not finished.
    joined = os.path.join(directory, "joined.wacz")
    cut = os.path.join(directory, "cut.wacz")
    run(program, "write", cut)
    os.truncate(cut, os.path.getsize(cut) // 2)
    lines, status = run(program, "read", cut)
    whole = len([line for line in lines if json.loads(line)["kind"] == "entry"])
    lines, status = run(program, "join", joined, good, cut)
    assert status == 0 and 0 < whole < len(written), lines
    both = written + written[:whole]
    failures += [f"joined: {name}: {reason}" for name, reason in verdicts(joined, both, directory, is_cut=True).items()]
    lines, status = run(program, "check", joined)
    failures += [f"joined: check: {line}" for line in lines]

    files = members(good)
    faults = 0
    by_warcat = 0
    for name, changed in planted(files):
        faults += 1
        path = os.path.join(directory, "planted.wacz")
        repacked(changed, path)
        found = verdicts(path, written, directory)
        by_warcat += "warcat" in found
        lines, status = run(program, "check", path)
        print(f"{name}: {', '.join(sorted(found)) or 'no judge'}; check: {lines[0] if lines else 'nothing'}")
        if not found or status != 1:
            failures.append(f"not found: {name}")
    print(f"{len(written)} records, {faults} planted faults, {f'{by_warcat} found by warcat' if WARCAT else 'warcat is not installed'}")
    if WARCAT and not by_warcat:
        failures.append("warcat finds no planted fault")
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(answer_by_pywb() if sys.argv[1:] == ["--pywb"] else main())
