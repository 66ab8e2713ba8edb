"""Long pages whose pictures load when they come into view. Pictures are red squares."""

import http.server
import json
import struct
import sys
import time
import zlib


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


SIDE = 64
ROWS = (b"\0" + b"\xff\0\0" * SIDE) * SIDE
PICTURE = (
    b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", SIDE, SIDE, 8, 2, 0, 0, 0)) +
    chunk(b"IDAT", zlib.compress(ROWS)) + chunk(b"IEND", b"")
)
FAR = "<div style='height:9000px'>a</div>"
# A menu waits at the right of the window.
SIDES = "<style>%s{overflow-x:hidden}nav{position:absolute;left:100%%;width:400px}</style><nav>MENU</nav><p>TEXT</p>" + FAR
WATCH = (
    "new IntersectionObserver(all => all.forEach(x => {"
    "if (x.isIntersecting) x.target.src = x.target.dataset.src})).observe(document.getElementById('o'))"
)


def growing(parts, work=""):
    """A page that gets another part when its end comes into view."""
    return (
        "<div style='height:2500px'>start</div><script>let n = 0;"
        f"new IntersectionObserver(all => {{ if (all[0].isIntersecting && n < {parts}) {{ n++; {work}"
        "const d = document.createElement('div'); d.style.height = '2500px'; d.textContent = 'PART ' + n;"
        "document.body.insertBefore(d, document.getElementById('e')) } }).observe("
        "document.body.appendChild(Object.assign(document.createElement('p'), {id: 'e', textContent: 'end'})))</script>"
    )


BLOCKS = "const r = new XMLHttpRequest(); r.open('GET', '/slow', false); r.send();"
# Parts that fade in whenever they come into view, half of them by the position, at which the page looks ten times a second and when the
# size of the window changes, and half of them by an observer; pictures that take turns in one place; and a button that floats above the page when it is scrolled.
FADES = """<style>body{margin:0}div{position:absolute;left:0;width:200px;height:100px;background:#f00}
.part,.slide{opacity:0;transition:opacity .4s}.part.in,.slide.on{opacity:1}
.top{position:fixed;top:0;visibility:hidden}.top.on{visibility:visible}</style><p style="height:9000px">FADES</p><script>
const make = (name, y) => {
  const part = document.createElement("div");
  part.className = name;
  if (y) part.style.top = y + "px";
  return document.body.appendChild(part);
};
const parts = [2500, 4000, 5500, 7000].map((y) => make("part", y));
const watch = new IntersectionObserver((seen) => seen.forEach((it) => it.target.style.opacity = it.isIntersecting ? 1 : 0));
[3000, 4500, 6000, 8500].forEach((y) => watch.observe(make("part", y)));
const slides = [3500, 3500, 3500].map((y) => make("slide", y));
const button = make("top");
let turn = 0, timer = 0;
setInterval(() => slides.forEach((slide, at) => slide.className = at === turn % 3 ? "slide on" : "slide", turn++), 100);
const look = () => {
  timer = 0;
  for (const part of parts) part.className = part.offsetTop < scrollY + innerHeight - 120 ? "part in" : "part";
  button.className = scrollY > 0 ? "top on" : "top";
};
for (const event of ["scroll", "resize"]) addEventListener(event, () => timer ||= setTimeout(look, 100));
look();
</script>"""

PAGES = {
    "/fades": FADES,
    "/lazy-far": FAR + "<img loading=lazy src=/p.png width=64 height=64>",
    "/eager-far": FAR + "<img src=/p.png width=64 height=64>",
    "/lazy-mid": "<div style='height:3500px'>a</div><img loading=lazy src=/p.png width=64 height=64>",
    "/lazy-top": "<img loading=lazy src=/p.png width=64 height=64>",
    "/lazy-hidden": "<div style='display:none'><img loading=lazy src=/hidden.png></div><p>x",
    "/lazy-frame": FAR + "<iframe loading=lazy src=/frame></iframe>",
    "/lazy-shadow": "<x-y><template shadowrootmode=open>" + FAR + "<img loading=lazy src=/p.png></template></x-y>",
    "/carousel": "<div style='width:300px;overflow:hidden;white-space:nowrap'>" +
    "".join(f"<img loading=lazy src=/c{n}.png width=300 height=64>" for n in range(8)) + "</div>",
    "/observer": FAR + "<img id=o data-src=/p.png width=64 height=64><script>" + WATCH + "</script>",
    "/box": "<style>html,body{margin:0;height:100%;overflow:hidden}main{height:100vh;overflow:auto}</style><main>" +
    FAR + "<p>END OF THE BOX</p><img loading=lazy src=/p.png width=64 height=64></main>",
    # Another colour in a narrow window, to which chromium changes for a moment while it takes the picture of a long page.
    "/wide-header": "<style>#h{width:600px;height:100px;background:#fff}"
    "@media (min-width:992px){#h{background:#f00;transition:background-color 1s}}</style><div id=h></div>" + FAR,
    "/more": growing(4),
    # As on a machine that is busy: nothing is drawn for most of a second.
    "/more-slow": growing(8, BLOCKS),
    "/print-hides": "<style>@media print { body { display: none } }</style><p>These are six words of text",
    "/print-part": "<style>@media print { article { display: none } }</style><nav>"
    + "menu " * 40 + "</nav><article>" + "article " * 80 + "</article>",
    "/scripts": "<meta charset=utf-8><p>Latin \u0421\u043b\u043e\u0432\u043e \u6f22\u5b57 \u1200\u1201 \u0e01\u0e02</p><p hidden>\u05d0</p>",
    "/wide": "<table><tr>" + "".join(f"<td style='min-width:200px'>COLUMN{n}" for n in range(20)) + "</table>",
    "/sides-html": SIDES % "html",
    "/sides-body": SIDES % "body",
    "/high": "<div style='height:40000px;background:linear-gradient(red, blue)'>top</div>",
    "/frame": "<p>IN THE FRAME",
    "/sections": "<details name=x><summary>one</summary><p>TEXT ONE</p></details>"
    "<details name=x><summary>two</summary><p>TEXT TWO</p></details><details open><p>OPEN</p></details>",
    "/media": "<audio id=idle preload=none src=/idle.wav onended='document.title = 1'></audio>"
    "<audio preload=auto src=/eager.wav></audio><video preload=none><source src=/dead.webm></video><audio></audio>",
}
# A second of silence: 8,000 samples of 8 bits.
SOUND = (
    b"RIFF" + struct.pack("<I", 36 + 8000) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8)
    + b"data" + struct.pack("<I", 8000) + b"\x80" * 8000
)


LOG = []


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path in PAGES:
            body, kind = ("<!doctype html><title>lazy</title>" + PAGES[self.path]).encode(), "text/html"
        elif self.path.endswith(".png"):
            body, kind = PICTURE, "image/png"
        elif self.path.endswith(".wav"):
            body, kind = SOUND, "audio/wav"
        elif self.path == "/log":
            body, kind = json.dumps(LOG).encode(), "application/json"
        elif self.path == "/slow":
            time.sleep(0.7)
            body, kind = b"slow", "text/plain"
        else:
            self.send_error(404)
            return
        LOG.append(self.path)
        print(self.path, flush=True)
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
