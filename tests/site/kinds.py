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


def paper():
    """A PDF of an empty page."""
    objects = [b"<< /Type /Catalog /Pages 2 0 R >>", b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
               b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 200 200] >>"]
    whole, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(whole))
        whole += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"xref\n0 4\n0000000000 65535 f \n" + b"".join(b"%010d 00000 n \n" % place for place in places)
    return whole + table + b"trailer << /Size 4 /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % len(whole)


def page(body, head=""):
    return f"<!DOCTYPE html><meta charset=utf-8><title>Kinds</title>{head}<body>{body}".encode()


ALL = page(
    """<h1>Kinds of requests</h1><p id=done>loading</p>
<img src=/a.png><img src=/moved.png><img src="data:image/gif;base64,R0lGODlhAQABAAAAACw=">
<iframe src=/frame></iframe><iframe src="OTHER/frame?other"></iframe>
<iframe sandbox=allow-scripts srcdoc="<script>fetch('OWN/boxed').then((r) => r.blob())</script>"></iframe><object data=/object.svg></object>
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
  worker(() => new Worker("/worker.js")), worker(() => new SharedWorker("/shared.js")), worker(() => new Worker("/outer.js")),
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
# Longer than it can be scrolled in time: it grows, and is busy, each time that it is scrolled.
GROWS = page(
    """<style>body { margin: 0 } div { height: 6000px; background: teal }</style><h1>TOP</h1><div></div>
<script>
addEventListener("scroll", () => {
  let sum = 0;
  for (let i = 0; i < 4e8; i++) sum += i % 7;
  if (scrollY > 0) document.body.append(document.createElement("div"));
});
</script>"""
)

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
# Bodies that are read in all ways in which a page can read them, or not at all.
BODIES = page(
    """<p>bodies</p><video muted autoplay src=/film.wav></video><img src=/twice.png><iframe src=/again></iframe><iframe src=OTHER/again></iframe>
<script>
const read = (path, as, how) => fetch(path, how).then((r) => r[as]());
const request = (path, type) => new Promise((done) => {
  const own = new XMLHttpRequest();
  own.open("GET", path);
  own.responseType = type;
  own.onloadend = done;
  own.send();
});
const worker = (make) => new Promise((done) => { const made = make(); (made.port || made).onmessage = done; });
const stream = new EventSource("/events");
const cache = caches.open("c");
Promise.allSettled([
  read("/large?30000000", "blob"),
  read("/large", "blob"), read("/text?gzip", "blob"), read("/text?br", "blob"), read("/slow", "blob"),
  read("/range", "blob", {headers: {Range: "bytes=100-199"}}), read("/blob.png", "blob"),
  read("/nothing", "blob"), read("/nothing?gzip", "blob"), read("/nothing?pieces", "blob"), read("/empty", "blob"),
  read("/head.png", "blob", {method: "HEAD"}), read("/text?deflate", "text"), read("/buffer.png", "arrayBuffer"),
  read("/posted", "blob", {method: "POST", body: "posted"}), read("/kept", "blob", {keepalive: true}), read("/missing", "blob"),
  read("OTHER/cross", "blob"), fetch("OTHER/opaque", {mode: "no-cors"}), read("/marked", "blob"), read("/latin", "blob"),
  read("/map.png", "blob").then(createImageBitmap), request("/asked-blob", "blob"), request("/asked-buffer", "arraybuffer"), request("/asked-text", ""),
  read("/cached?1", "text").then(() => read("/cached?1", "blob")), read("/cached?2", "blob").then(() => read("/cached?2", "blob")),
  fetch("/cloned").then((r) => Promise.all([r.clone().text(), r.blob()])),
  fetch("/ignored"), fetch("/refused").then((r) => r.body.cancel()), fetch("/large?ignored"),
  fetch("/large?begun").then(async (r) => { const reader = r.body.getReader(); await reader.read(); await reader.cancel(); }),
  fetch("/streamed").then((r) => new Response(r.body).blob()),
  cache.then((c) => c.add("/cache-add")), cache.then(async (c) => c.put("/cache-put", await fetch("/cache-put"))),
  WebAssembly.compileStreaming(fetch("/module.wasm")), import("/imported.js"), worker(() => new Worker("/blobs.js")),
  worker(() => new Worker("/blobs.js?module", {type: "module"})), worker(() => new SharedWorker("/blobs.js?shared")),
  new Promise((done) => { stream.onmessage = (e) => { if (e.data === "2") { stream.close(); done(); } } }),
]).then(() => fetch("/done"));
</script>""",
    """<link rel=preload as=image href=/unused.png><link rel=preload as=fetch crossorigin href=/unused><link rel=prefetch href=/prefetch.html>
<link rel=modulepreload href=/unused.js><style>@font-face { font-family: F; src: url(/font.woff) } body { font-family: F }</style>""")
# A page that is gone when what it asked for arrives.
LEFT = page("""<p>left</p><script>
fetch("/slow?kept", {keepalive: true});
fetch("/slow?beacon", {keepalive: true, method: "POST", body: "b"}).then((r) => r.blob());
onload = () => { location = "/arrived" };
</script>""")
# The same PDF in all ways in which a page shows one, and a frame whose server does not answer.
PAPERS = page("""<p>papers</p><iframe src=/paper.pdf?frame></iframe><embed type=application/pdf src=/paper.pdf?embed>
<object data=/paper.pdf?object></object><iframe src=/pieces.pdf></iframe><iframe src=OTHER/paper.pdf?other></iframe><iframe src=http://127.0.0.1:10/></iframe>
<script>
fetch("/paper.pdf?blob").then((r) => r.blob()).then((b) => {
  const frame = document.body.appendChild(document.createElement("iframe"));
  frame.src = URL.createObjectURL(b);
});
</script>""")
# Its picture is for paper alone.
PRINTED = page("<p>printed</p><img src=/a.png>", "<style>@media print { p { background: url(/print.png) } }</style>")
SOUND = page("<p>sound</p><audio preload=metadata src=/long.wav></audio>")
# What a player asks of a file: parts in its own sizes, some of which the browser has from before, and the length.
RANGES = page("""<p id=got></p><audio id=sound preload=metadata src=/long.wav></audio><script>
const ask = async (url, range, method) => {
  const answer = await fetch(url, {method, headers: range ? {Range: range} : {}});
  const bytes = new Uint8Array(await answer.arrayBuffer());
  const sum = bytes.reduce((sum, byte) => (sum * 31 + byte) % 1000003, 7);
  const names = ["content-length", "content-range"];
  return [url, range, answer.status, bytes.length, sum, ...names.map((name) => answer.headers.get(name))].join(" ");
};
const say = (line) => document.getElementById("got").append(line, document.createElement("br"));
const play = async () => {
  for (const range of ["bytes=0-65535", "bytes=65536-131071", "bytes=200000-", "bytes=-1000", "bytes=300000-", "bytes=0-9", "bytes=5-14"])
    say(await ask("/film", range));
  say(await ask("/film", "", "HEAD"));
  for (const range of ["bytes=0-999", "bytes=2000-2999", "bytes=500-2499", "bytes=0-3999", "bytes=100-199"])
    say(await ask("/kept-film", range));
  const list = (await (await fetch("/film.m3u8")).text()).split("\\n");
  for (const [, count, first] of list.map((line) => line.match(/BYTERANGE:(\\d+)@(\\d+)/)).filter(Boolean))
    say(await ask("/film.ts", `bytes=${first}-${+first + +count - 1}`));
  // The browser answers this one with the parts that it has, and says so.
  say((await ask("/film.ts")).replace(/ 20[06] | bytes .*/g, ""));
  // A page with open requests is not ready.
  let is_sought = false;
  sound.onseeked = () => { is_sought = true; };
  while (!sound.duration) await fetch("/tick");
  sound.currentTime = 450;
  while (!is_sought) await fetch("/tick");
  say(`sought ${sound.currentTime} of ${sound.duration}`);
};
play().catch(say).then(() => fetch("/done"));
</script>""")
FILM = b"".join(hashlib.sha256(b"%d" % n).digest() for n in range(9375))
PLAYLIST = "#EXTM3U\n#EXT-X-TARGETDURATION:4\n" + "".join(
    f"#EXTINF:4,\n#EXT-X-BYTERANGE:{count}@{first}\nfilm.ts\n" for first, count in [(0, 70_000), (70_000, 90_000), (160_000, 140_000)])
# Scripts ask for what their cookies say.
COOKIES = page("""<p id=said></p><script>
const names = Object.fromEntries(document.cookie.split("; ").map((one) => one.split("=")));
fetch(`/data?region=${names.region}&way=${names.way}&member=${encodeURIComponent(names.member)}`).then((answer) => answer.text()).then((text) => {
  document.getElementById("said").textContent = document.cookie + " / " + text; fetch("/done"); });
</script>""")
STREAM = page("""<p>stream</p><script>new EventSource("/events")</script>""")
LONG = wav(500)
PAPER = paper()
ASKS = "<p id=said></p><script>fetch('/data?%s=' + Math.random()).then((r) => r.text()).then((t) => { document.getElementById('said').textContent = t })</script>"
# Port 9 (discard) has no server.
BROKEN = page("""<script>
console.error("wrote", 7);
fetch("http://127.0.0.1:9/absent").catch((error) => { document.title = String(error); });
fetch("http://127.0.0.1:9/asked", {method: "POST", headers: {"x-own": "1"}}).catch(() => {});
</script><script>nothing.at.all();</script><script>for (let n = 0; n < 900; n++) console.log("one of many", n);</script>""")
# Pixels that no format keeps in a few bytes.
NOISE = page("""<canvas width=1400 height=900></canvas><script>
const area = document.querySelector("canvas").getContext("2d"), all = area.createImageData(1400, 900);
for (let at = 0, n = 1; at < all.data.length; at++) all.data[at] = at % 4 === 3 ? 255 : (n = n * 16807 % 2147483647) >> 8 & 255;
area.putImageData(all, 0, 0);
</script>""")
RANDOM = page(ASKS % "page" + "<iframe src=/random-frame></iframe><iframe src=/random-frame></iframe><iframe src=OTHER/random-frame></iframe>")
# Scripts ask for what the browser says of the world. Two workers of one script draw numbers, too.
WORLD = page("""<p id=said></p><script>
const { timeZone, locale } = Intl.DateTimeFormat().resolvedOptions();
const is = (query) => matchMedia(query).matches;
const world = [timeZone, locale, 0.5.toLocaleString(), navigator.languages, new Date().getTimezoneOffset(), new Date().toDateString(),
  innerWidth, innerHeight, screen.width, screen.height, devicePixelRatio,
  is("(prefers-color-scheme: dark)"), is("(prefers-reduced-motion: reduce)"), Math.random()];
const ask = (asked) => fetch("/data?" + encodeURIComponent(asked));
const worker = () => new Promise((done) => { new Worker("/world.js").onmessage = ({ data }) => done(data); });
Promise.all([ask(world), worker(), worker()]).then(([, ...numbers]) => {
  document.getElementById("said").textContent = [...world, ...numbers.sort()].join(" ");
});
</script>""")
WORKER = b"""const asked = [Intl.DateTimeFormat().resolvedOptions().timeZone, Math.random()].join();
fetch("/data?" + encodeURIComponent(asked)).then(() => postMessage(asked))"""
# A page that looks for traces of a seed.
TRACES = page("""<iframe></iframe><iframe></iframe><p id=said></p><script>
const own = new Set(Object.getOwnPropertyNames(frames[0]));
const { value, ...kind } = Object.getOwnPropertyDescriptor(Math, "random");
let made;
try { new Math.random(); } catch (error) { made = error.message; }
const drawn = [window, frames[0], frames[1]].map((frame) => Array.from({ length: 9 }, () => frame.Math.random())).flat();
const traces = [String(value), Function.prototype.toString.call(value), value.name, value.length, Object.getOwnPropertyNames(value),
  value.__proto__ === Function.prototype, made, JSON.stringify(kind), new Set(drawn).size,
  Object.getOwnPropertyNames(window).filter((name) => !own.has(name) && !/^\\d+$/.test(name))];
document.getElementById("said").textContent = traces.join("\\n");
</script>""")
# Scripts make parts of what they ask for of chance that has no seed. The items differ.
IDS = page("""<p id=said></p><script>
const id = () => crypto.randomUUID();
const bytes = () => Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
const json = { "content-type": "application/json" };
const asks = [fetch(`/with/${id()}/path`), fetch(`/part-${bytes()}.txt`), fetch(`/item/${id()}`), fetch(`/item/${id()}`),
  fetch("/json", { method: "POST", headers: json, body: JSON.stringify({ visit: { id: id() }, what: "json" }) }),
  fetch("/form", { method: "POST", body: new URLSearchParams({ sid: bytes().slice(0, 7) + 1, what: "form" }) })];
Promise.all(asks.map((ask) => ask.catch(() => ({ status: 0 })))).then((answers) => {
  document.getElementById("said").textContent = answers.map((answer) => answer.status).join(" ");
});
</script>""")

# Content type and body of each path.
FILES = {
    "/all": ("text/html", ALL),
    "/service": ("text/html", SERVICE),
    "/hinted": ("text/html", HINTED),
    "/hinted.css": ("text/css", b"p { color: green }"),
    "/odd": ("text/html", ODD),
    "/bodies": ("text/html", BODIES),
    "/left": ("text/html", LEFT),
    "/arrived": ("text/html", page("<p>arrived</p><script>setTimeout(() => fetch('/done'), 500)</script>")),
    "/again": ("text/html", page("<img src=/twice.png><script>fetch('/in-frame?' + location.host).then((r) => r.blob())</script>")),
    "/blobs.js": (
        "text/javascript",
        b"const all = ['blob', 'text'].map((as) => fetch(`/${as}-of-worker` + location.search).then((r) => r[as]()));"
        b"let sent = Promise.all(all); self.onconnect = (e) => sent.then(() => e.ports[0].postMessage(1));"
        b"if (!location.search.includes('shared')) sent.then(() => postMessage(1))",
    ),
    "/marked": ("text/plain; charset=utf-8", b"\xef\xbb\xbf" + TEXT),
    "/latin": ("text/plain; charset=iso-8859-1", "\u00e4\u00f6\u00fc".encode("latin-1") * 100),
    "/module.wasm": ("application/wasm", b"\0asm\1\0\0\0"),
    "/papers": ("text/html", PAPERS),
    "/paper.pdf": ("application/pdf", PAPER),
    "/closes": ("text/html", page("<p>closes</p><img src=/a.png><script>onload = () => window.close()</script>")),
    "/leaves": ("text/html", page("<p>leaves</p><img src=/a.png><script>onload = () => { location = '/plain' }</script>")),
    "/sound": ("text/html", SOUND),
    "/ranges": ("text/html", RANGES),
    "/film.m3u8": ("application/vnd.apple.mpegurl", PLAYLIST.encode()),
    "/printed": ("text/html", PRINTED),
    "/broken": ("text/html", BROKEN),
    "/noise": ("text/html", NOISE),
    "/resized": ("text/html", RESIZED),
    "/sticky": ("text/html", STICKY),
    "/grows": ("text/html", GROWS),
    "/stream": ("text/html", STREAM),
    "/random": ("text/html", RANDOM),
    "/world": ("text/html", WORLD),
    "/world.js": ("text/javascript", WORKER),
    "/traces": ("text/html", TRACES),
    "/ids": ("text/html", IDS),
    "/random-frame": ("text/html", page(ASKS % "frame")),
    "/plain": ("text/html", page("<p>plain</p>")),
    "/frame": ("text/html", page("<img src=/in-frame.png><script>fetch('/by-frame')</script>")),
    "/object.svg": ("image/svg+xml", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
    "/style.css": ("text/css", b"@import '/more.css'; @font-face { font-family: F; src: url(/font.woff) } body { font-family: F }"),
    "/more.css": ("text/css", b"h1 { background: url(/background.png) }"),
    "/script.js": ("text/javascript", b"fetch('/by-script')"),
    "/module.js": ("text/javascript", b"import '/imported.js'"),
    "/worker.js": ("text/javascript", b"importScripts('/part.js'); fetch('/by-worker').then((r) => r.text()).then(() => postMessage(1))"),
    "/outer.js": ("text/javascript", b"new Worker('/worker.js?inner').onmessage = () => postMessage(1)"),
    "/shared.js": ("text/javascript", b"onconnect = (e) => fetch('/by-shared').then((r) => r.text()).then(() => e.ports[0].postMessage(1))"),
    "/service.js": (
        "text/javascript",
        b"const precache = async () => { await (await fetch('/by-service')).blob(); await (await caches.open('c')).addAll(['/precached']) };"
        b"oninstall = (e) => e.waitUntil(precache());"
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

    def part(self, kind, whole, headers):
        """The bytes of a file that the Range header asks for."""
        range = self.headers.get("Range", "")
        if not range or self.command == "HEAD":
            return self.reply(200, kind, whole, headers)
        first, last = range.removeprefix("bytes=").split("-")
        end = len(whole)
        first, last = (int(first), min(int(last or end), end - 1)) if first else (end - int(last), end - 1)
        if first >= end:
            return self.reply(416, "text/plain", b"", [("Content-Range", f"bytes */{end}")])
        self.reply(206, kind, whole[first : last + 1], [*headers, ("Content-Range", f"bytes {first}-{last}/{end}"), ("X-Range", range)])

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
        elif path == "/large" and query.isdigit():
            # /large?BYTES
            self.reply(200, "text/plain", large(int(query)), [("ETag", '"' + query + '"'), ("Cache-Control", "no-store")])
        elif path == "/cached":
            self.reply(200, "text/plain", TEXT, [("Cache-Control", "max-age=1000")])
        elif path in FILES:
            kind, body = FILES[path]
            body = body.replace(b"OTHER", f"{self.scheme()}://localhost:{port}".encode())
            body = body.replace(b"OWN", f"{self.scheme()}://{self.headers.get('Host')}".encode())
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
        elif path == "/pieces.pdf":
            self.pieces("application/pdf", [PAPER[:100], PAPER[100:]], 0.05)
        elif path == "/cookies" and "way=" not in self.headers.get("Cookie", ""):
            cookie = "way=a7; Path=/; Expires=Thu, 01 Jan 2099 00:00:00 GMT"
            self.reply(302, "text/plain", b"", [("Location", self.path), ("Set-Cookie", cookie)])
        elif path == "/cookies":
            cookies = ["region=eu7; Path=/; Max-Age=86400", "hidden=ofservers; HttpOnly", "way=b8"]
            asked = [cookie for cookie in self.headers["Cookie"].split("; ") if cookie.startswith("member=")]
            who = f"<p>{asked[0].removeprefix('member=')}".encode() if asked else b""
            self.reply(200, "text/html", COOKIES + who, [("Set-Cookie", cookie) for cookie in cookies])
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
        elif path == "/long.wav" or "film" in path:
            whole, kind = (LONG, "audio/wav") if path == "/long.wav" else (FILM, "video/mp4")
            age = 3600 if path == "/kept-film" else 0
            self.part(kind, whole, [("ETag", '"1"'), ("Accept-Ranges", "bytes"), ("Cache-Control", f"max-age={age}")])
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
