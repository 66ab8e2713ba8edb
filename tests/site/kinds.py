#!/usr/bin/env python3
"""A page with many kinds of requests, and a log of what was sent. Needs the standard library alone.

`kinds.py --port 0` listens on a free port and prints it. The host `localhost` is another site than 127.0.0.1.
/log returns the requests: method, URL, status, and the SHA-256 of the body before its coding.
/log?PATH waits for a request for PATH first, /log?NUMBER for so many requests.
A proxy that speaks another protocol names it in X-Forwarded-Proto.
"""

import base64
import gzip
import hashlib
import itertools
import json
import struct
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
# A text in codings that Python has no module for.
REPEATED = b"coded text\n" * 4000
CODED = {
    "br": base64.b64decode("G9+r+B0JNk52bf4ZKsnG8FoBpIxOlb3FgRFAj6MAFfcA"),
    "zstd": base64.b64decode("KLUv/QRonQAAWGNvZGVkIHRleHQKAQDSK+vFC39TZXs="),
}
TEXT = "".join(f"line {n}: äöü\n" for n in range(2000)).encode()


def wav(seconds):
    data = bytes(8000 * seconds)
    form = struct.pack("<HHIIHH", 1, 1, 8000, 8000, 1, 8)
    return b"RIFF" + struct.pack("<I", 36 + len(data)) + b"WAVEfmt " + struct.pack("<I", 16) + form + b"data" + struct.pack("<I", len(data)) + data


def large(bytes_):
    return (b"0123456789abcdef" * (bytes_ // 16 + 1))[:bytes_]


def page(body, head=""):
    return f"<!DOCTYPE html><meta charset=utf-8><title>Kinds</title>{head}<body>{body}".encode()


ALL = page(
    """<h1>Kinds of requests</h1><p id=done>loading</p>
<img src=/a.png><img src=/moved.png><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">
<iframe src=/frame></iframe><iframe src="OTHER/frame?other"></iframe><object data=/object.svg></object>
<script src=/script.js></script><script type=module src=/module.js></script>
<script>
const post = (url, body, type) => fetch(url, {method: "POST", body, headers: type ? {"Content-Type": type} : {}});
const form = new FormData();
form.append("name", "value");
form.append("file", new Blob(["content of the file"]), "a.txt");
const worker = (make) => new Promise((done) => { const made = make(); (made.port || made).onmessage = done; });
const all = [
  fetch("/text?gzip").then((r) => r.text()), fetch("/text?deflate").then((r) => r.text()),
  fetch("/text?br").then((r) => r.text()), fetch("/text?zstd").then((r) => r.text()), fetch("/slow").then((r) => r.text()),
  fetch("/missing"), fetch("/error"), fetch("/empty"), fetch("/a.png?head", {method: "HEAD"}),
  fetch("/range", {headers: {Range: "bytes=100-199"}}).then((r) => r.text()),
  fetch("OTHER/cross", {headers: {"X-Own": "1"}}).then((r) => r.text()),
  post("/post?small", '{"a":1}', "application/json"), post("/post?large", "x".repeat(300000)), post("/post?form", form),
  fetch("/keep", {keepalive: true, method: "POST", body: "kept"}), fetch("/large").then((r) => r.arrayBuffer()),
  fetch(URL.createObjectURL(new Blob(["blob"]))).then((r) => r.text()),
  worker(() => new Worker("/worker.js")), worker(() => new SharedWorker("/shared.js")),
  import("/dynamic.js"),
];
navigator.sendBeacon("/beacon", "ping");
new WebSocket("SOCKET/socket");
Promise.allSettled(all).then(() => fetch("/done")).then(() => { document.getElementById("done").textContent = "done"; });
</script>""",
    """<link rel=icon href=/icon.png><link rel=stylesheet href=/style.css>
<link rel=preload href=/preload.js as=script><link rel=prefetch href=/prefetch.html>""",
)
SERVICE = page(
    """<p id=done>loading</p><script>
navigator.serviceWorker.register("/service.js").then(() => navigator.serviceWorker.ready)
  .then(() => fetch("/by-page")).then((r) => r.text())
  .then(() => fetch("/done")).then(() => { document.getElementById("done").textContent = "done"; });
</script>"""
)
RESIZED = page("""<p id=p>as loaded</p><div style="height: 5000px"></div><script>
onresize = () => { document.getElementById("p").textContent = "resized" };
</script>""")
# A side bar that stays in view while the page scrolls, and begins at a fraction of a pixel.
STICKY = page(
    "<nav>Navigation</nav><div id=all><div id=side><div><ul>" + "".join(f"<li>Section {n}" for n in range(30)) + "</ul></div></div><main>"
    + "".join(f"<p>Paragraph {n}: a few words about it." for n in range(250)) + "</main></div>",
    """<style>
body { font: 16px sans-serif; margin: 0 } nav { line-height: 33.4px } #all { display: flex } p { line-height: 1.4 }
#side { position: sticky; top: 0; max-height: 100vh; width: 200px; line-height: 130%; font-size: smaller; background: #eee; border-radius: 5px }
#side > div { box-sizing: border-box; height: 100%; overflow-x: hidden; overflow-y: auto } li { margin-bottom: .4em }
</style>""")
# The proxy for HTTP/2 sends the style sheet ahead.
HINTED = page("""<p id=done>loading</p><script>
fetch("/done").then(() => { document.getElementById("done").textContent = "done"; });
</script>""", "<link rel=stylesheet href=/hinted.css>")
# Answers that never end, or that the browser refuses.
ODD = page("""<p>odd</p><img src="/loop?0"><script>
fetch("/head?200000"); fetch("/head?1000000"); fetch("/drip").then((r) => r.text());
</script>""")
BLOBS = page("""<p>blobs</p><script>
const read = (path, as, how) => fetch(path, how).then((r) => r[as]());
Promise.all([
  read("/large", "blob"), read("/text?gzip", "blob"), read("/text?br", "blob"), read("/slow", "blob"),
  read("/range", "blob", {headers: {Range: "bytes=100-199"}}), read("/blob.png", "blob"),
  read("/nothing", "blob"), read("/nothing?gzip", "blob"), read("/nothing?pieces", "blob"), read("/empty", "blob"),
  read("/head.png", "blob", {method: "HEAD"}), read("/text?deflate", "text"), read("/buffer.png", "arrayBuffer"),
]).then(() => fetch("/done"));
</script>""")
# Its picture is for paper alone.
PRINTED = page("<p>printed</p><img src=/a.png>", "<style>@media print { p { background: url(/print.png) } }</style>")
SOUND = page("<p>sound</p><audio preload=metadata src=/long.wav></audio>")
STREAM = page("""<p>stream</p><script>new EventSource("/events")</script>""")
LONG = wav(500)
ASKS = "<p id=said></p><script>fetch('/data?%s=' + Math.random()).then((r) => r.text()).then((t) => { document.getElementById('said').textContent = t })</script>"
# Port 9 (discard) has no server.
BROKEN = page("""<script>
console.error("wrote", 7);
fetch("http://127.0.0.1:9/absent").catch((error) => { document.title = String(error); });
fetch("http://127.0.0.1:9/asked", {method: "POST", headers: {"x-own": "1"}}).catch(() => {});
</script><script>nothing.at.all();</script>""")
RANDOM = page(ASKS % "page" + "<iframe src=/random-frame></iframe><iframe src=/random-frame></iframe><iframe src=OTHER/random-frame></iframe>")

# Content type and body of each path.
FILES = {
    "/all": ("text/html", ALL),
    "/service": ("text/html", SERVICE),
    "/hinted": ("text/html", HINTED),
    "/hinted.css": ("text/css", b"p { color: green }"),
    "/odd": ("text/html", ODD),
    "/blobs": ("text/html", BLOBS),
    "/closes": ("text/html", page("<p>closes</p><img src=/a.png><script>onload = () => window.close()</script>")),
    "/leaves": ("text/html", page("<p>leaves</p><img src=/a.png><script>onload = () => { location = '/plain' }</script>")),
    "/sound": ("text/html", SOUND),
    "/printed": ("text/html", PRINTED),
    "/broken": ("text/html", BROKEN),
    "/resized": ("text/html", RESIZED),
    "/sticky": ("text/html", STICKY),
    "/stream": ("text/html", STREAM),
    "/random": ("text/html", RANDOM),
    "/random-frame": ("text/html", page(ASKS % "frame")),
    "/plain": ("text/html", page("<p>plain</p>")),
    "/frame": ("text/html", page("<img src=/in-frame.png><script>fetch('/by-frame')</script>")),
    "/object.svg": ("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
    "/style.css": ("text/css", b"@import '/more.css'; @font-face { font-family: F; src: url(/font.woff) } body { font-family: F }"),
    "/more.css": ("text/css", b"h1 { background: url(/background.png) }"),
    "/script.js": ("text/javascript", b"fetch('/by-script')"),
    "/module.js": ("text/javascript", b"import '/imported.js'"),
    "/worker.js": ("text/javascript", b"importScripts('/part.js'); fetch('/by-worker').then((r) => r.text()).then(() => postMessage(1))"),
    "/shared.js": ("text/javascript", b"onconnect = (e) => fetch('/by-shared').then((r) => r.text()).then(() => e.ports[0].postMessage(1))"),
    "/service.js": (
        "text/javascript",
        b"oninstall = (e) => e.waitUntil(caches.open('c').then((c) => c.addAll(['/precached'])));"
        b"onactivate = (e) => e.waitUntil(clients.claim());"
        b"onfetch = (e) => { if (e.request.url.endsWith('/by-page')) e.respondWith(fetch('/for-worker')) }",
    ),
    "/large": ("application/octet-stream", large(3_000_000)),
    "/cross": ("text/plain", TEXT),
}
LOG = []
LOCK = threading.Condition()


def note(request, status, body):
    with LOCK:
        url = f"{request.scheme()}://{request.headers.get('Host', '')}{request.path}"
        digest = hashlib.sha256(body).hexdigest()
        posted = getattr(request, "posted", "")
        LOG.append({"range": request.headers.get("Range", ""), "method": request.command, "path": request.path, "url": url, "status": status, "sha256": digest, "posted": posted,
                    "headers": dict(request.headers)})
        LOCK.notify_all()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def scheme(self):
        return self.headers.get("X-Forwarded-Proto", "http")

    def reply(self, status, kind, body, headers=(), sent=None):
        """`sent` is the coded body."""
        note(self, status, body)
        sent = body if sent is None else sent
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Access-Control-Allow-Origin", "*")
        self.send_header("Access-Control-Allow-Headers", "*")
        for name, value in headers:
            self.send_header(name, value)
        if status not in (204, 304):
            self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(sent)

    def pieces(self, kind, pieces, delay):
        note(self, 200, b"".join(pieces) if isinstance(pieces, list) else b"")
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.flush()
            time.sleep(delay)
        self.wfile.write(b"0\r\n\r\n")

    def do_GET(self):
        path = urlsplit(self.path).path
        query = urlsplit(self.path).query
        port = self.headers.get("Host", "").rpartition(":")[2]
        if path == "/log":
            with LOCK:
                number = int(query) if query.isdigit() else 0
                LOCK.wait_for(lambda: len(LOG) >= number if number else not query or any(sent["path"] == query for sent in LOG), 10)
                body = json.dumps(LOG).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)
        elif path in FILES:
            kind, body = FILES[path]
            body = body.replace(b"OTHER", f"{self.scheme()}://localhost:{port}".encode())
            body = body.replace(b"SOCKET", f"ws{self.scheme()[4:]}://127.0.0.1:{port}".encode())
            headers = [("Set-Cookie", "secret=1; HttpOnly")] if path == "/all" else []
            self.reply(200, kind, body, headers)
        elif path == "/text" and query in CODED:
            self.reply(200, "text/plain", REPEATED, [("Content-Encoding", query)], CODED[query])
        elif path == "/text":
            coded = gzip.compress(TEXT) if query == "gzip" else zlib.compress(TEXT)
            self.reply(200, "text/plain; charset=utf-8", TEXT, [("Content-Encoding", query)], coded)
        elif path == "/moved.png":
            self.reply(302, "text/plain", b"moved", [("Location", "/arrived.png"), ("Set-Cookie", "moved=1")])
        elif path == "/slow":
            self.pieces("text/plain", [b"piece %d\n" % n for n in range(5)], 0.05)
        elif path == "/events":
            self.pieces("text/event-stream", [b"data: %d\n\n" % n for n in range(3)] + [b": waits\n\n"] * 600, 0.1)
        elif path == "/loop":
            self.reply(302, "text/plain", b"", [("Location", "/loop?%d" % (int(query) + 1))])
        elif path == "/head":
            # /head?BYTES: headers of this size.
            lines = [("X-Line-%d" % n, "x" * 1000) for n in range(int(query) // 1000)]
            self.reply(200, "text/plain", b"head", lines)
        elif path == "/drip":
            self.pieces("text/plain", itertools.repeat(large(1 << 16)), 0.01)
        elif path == "/range":
            whole = large(1000)
            self.reply(206, "text/plain", whole[100:200], [("Content-Range", "bytes 100-199/1000")])
        elif path == "/body":
            # /body?BYTES
            self.send_response(200)
            size = int(query)
            self.send_header("Content-Type", "application/octet-stream")
            self.send_header("Content-Length", str(size))
            self.end_headers()
            piece = large(1 << 20)
            while size > 0:
                self.wfile.write(piece[:size])
                size -= len(piece)
        elif path == "/fetches":
            # /fetches?BYTES: a page that fetches a body of this size.
            self.reply(200, "text/html", page("<script>fetch('/body?%s').then((r) => r.arrayBuffer()).then((b) => { document.title = b.byteLength })</script>" % query))
        elif path == "/reads":
            # /reads?BYTES: a page that counts the bytes of such a body while they arrive.
            script = """(async () => {
              const reader = (await fetch("/body?%s")).body.getReader();
              let bytes = 0;
              for (let next; !(next = await reader.read()).done;) bytes += next.value.length;
              await fetch("/read?" + bytes);
            })()"""
            self.reply(200, "text/html", page("<script>" + script % query + "</script>"))
        elif path == "/many":
            # /many?COUNT: a page that requests this many URLs.
            script = """(async () => {
              for (let n = 0; n < %s; n += 100)
                await Promise.all([...Array(100).keys()].map((k) => fetch("/m?" + (n + k)).then((r) => r.text())));
              await fetch("/done");
            })()"""
            self.reply(200, "text/html", page("<script>" + script % query + "</script>"))
        elif path == "/images":
            # /images?COUNT: a page with images of 70 bytes.
            self.reply(200, "text/html", page("".join(f"<img src=/i{n}.png>" for n in range(int(query)))))
        elif path == "/socket":
            key = self.headers.get("Sec-WebSocket-Key", "") + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            self.rfile.read(1)
        elif path.endswith(".png"):
            self.reply(200, "image/png", PNG)
        elif path == "/data":
            self.reply(200, "text/plain", self.path.encode())
        elif path == "/missing":
            self.reply(404, "text/html", b"<h1>Not found</h1>")
        elif path == "/error":
            self.reply(500, "text/plain", b"error")
        elif path == "/nothing" and query == "pieces":
            self.pieces("text/plain", [], 0)
        elif path == "/nothing" and query == "gzip":
            self.reply(200, "text/plain", b"", [("Content-Encoding", "gzip")], gzip.compress(b""))
        elif path == "/nothing":
            self.reply(200, "text/plain", b"")
        elif path == "/empty":
            self.reply(204, "text/plain", b"")
        elif path == "/font.woff":
            self.reply(200, "font/woff", large(2000))
        elif path == "/long.wav":
            first, last = self.headers["Range"].removeprefix("bytes=").split("-")
            whole = LONG
            first, last = int(first), int(last or len(whole) - 1)
            headers = [("Content-Range", f"bytes {first}-{last}/{len(whole)}"), ("X-Range", self.headers["Range"])]
            self.reply(206, "audio/wav", whole[first : last + 1], headers)
        elif path.endswith(".wav"):
            self.reply(200, "audio/wav", wav(2))
        else:
            kind = "text/javascript" if path.endswith(".js") else "text/html" if path.endswith(".html") else "text/plain"
            self.reply(200, kind, f"/* {path} */".encode())

    def do_HEAD(self):
        self.do_GET()

    def do_OPTIONS(self):
        self.reply(204, "text/plain", b"")

    def do_POST(self):
        length = int(self.headers.get("Content-Length", 0))
        self.posted = hashlib.sha256(self.rfile.read(length)).hexdigest()
        self.reply(200, "application/json", b'{"ok":true}')


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A browser that closes a connection is no fault."""


if __name__ == "__main__":
    server = Server(("127.0.0.1", int(sys.argv[2])), Handler)
    print(f"listening on http://127.0.0.1:{server.server_address[1]}/", flush=True)
    server.serve_forever()
