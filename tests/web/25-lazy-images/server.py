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
ROWS = """<h1>List</h1><div id=list style="@BOX@"><div id=rows style="position:relative"></div></div><script>
const all = @ALL@, box = @SCROLLER@ || document.scrollingElement;
rows.style.height = all * 35 + "px";
const draw = () => {
  const first = Math.max(0, Math.floor(box.scrollTop / 35) - 2), shown = Math.ceil(box.clientHeight / 35) + 4;
  rows.replaceChildren(...[...Array(Math.min(shown, all - first)).keys()].map((n) => {
    const row = document.createElement("div");
    row.style = `position:absolute;height:35px;top:${(first + n) * 35}px`;
    row.textContent = `Row ${first + n}!`;
    return row;
  }));
};
(@SCROLLER@ || document).addEventListener("scroll", draw);
draw();
</script>"""


def rows(count, style, scroller):
    return ROWS.replace("@ALL@", str(count)).replace("@BOX@", style).replace("@SCROLLER@", scroller)


# Each part is seen when it is in the window, and loads its picture then.
WHEEL = """<style>html,body{margin:0;height:100%;overflow:hidden}section{height:1500px;opacity:0}img{display:block}</style>
<main><section>ONE</section><section>TWO</section><section>THREE</section><section>FOUR</section></main><script>
const main = document.querySelector("main");
let y = 0;
const draw = () => {
  main.style.transform = `translate3d(0,${-y}px,0)`;
  for (const part of document.querySelectorAll("section")) {
    const { top, bottom } = part.getBoundingClientRect();
    const isSeen = top < innerHeight && bottom > 0;
    part.style.opacity = isSeen ? 1 : 0;
    if (isSeen && !part.querySelector("img")) part.append(Object.assign(new Image(64, 64), { src: "/" + part.textContent + ".png" }));
  }
};
addEventListener("wheel", (event) => {
  y = Math.max(0, Math.min(main.offsetHeight - innerHeight, y + event.deltaY / 2));
  draw();
});
addEventListener("resize", () => setTimeout(draw, 200));
draw();
</script>"""
VERTICAL = (
    "<style>%s{writing-mode:vertical-rl}%s</style><main><img src=/p.png><p style='width:%dpx'>BEGIN OF THE PAGE</p>"
    "<p>END OF THE PAGE</p><img loading=lazy src=/p.png width=64 height=64></main>"
)
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
# size of the window changes, and half of them by an observer; pictures that take turns in one place, three by time, and two when the page is
# at its top again; and a button that floats above the page when it is scrolled.
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
const late = [6500, 6500].map((y) => make("slide", y));
const change = () => late.forEach((slide, at) => slide.className = at === (scrollY > 0 ? 0 : 1) ? "slide on" : "slide");
addEventListener("scroll", change);
change();
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

# What a page loads when the reader first does something, and whether the browser or a script did it.
FIRST = """<h1>Heading</h1><div id=main>SKELETON</div><a href=/frame style="display:block;height:600px">link</a><script>
const kinds = %s, go = (event) => {
  if (!event.isTrusted) return;
  kinds.forEach((kind) => removeEventListener(kind, go));
  fetch("/slow").then(() => setTimeout(() => main.textContent = "FULL " + event.type, 600));
};
kinds.forEach((kind) => addEventListener(kind, go, { passive: true }));
for (const kind of ["click", "contextmenu", "mouseup", "touchend"]) addEventListener(kind, () => document.title = "CLICKED");
</script>"""
# The same for a page that begins to listen late.
LATE = "addEventListener('keydown', () => main.textContent = 'FULL', { once: true })"
# A menu that opens when the pointer is on it, and a message for readers who leave at the top.
HOVERS = """<style>body{margin:0}#menu{height:100vh}#menu div{display:none}#menu:hover div{display:block}</style>
<nav id=menu>MENU<div>OPEN MENU</div></nav><script>
addEventListener("mousemove", () => menu.dataset.seen = "moved");
document.documentElement.addEventListener("mouseleave", (event) => { if (event.clientY <= 0) menu.textContent = "DO NOT GO"; });
menu.addEventListener("mouseenter", () => menu.dataset.open = "open");
menu.addEventListener("mouseleave", () => menu.dataset.open = "closed");
</script>"""
# A header that shrinks when the page is scrolled, and forgets a change that comes less than 50 ms after another one.
PINNED = """<style>body{margin:0}header{position:sticky;top:-1px;background:#ff0}header.pinned h1{display:none}</style>
<header><h1>HEADING</h1>menu</header><div style="height:%dpx">text</div><script>
const header = document.querySelector("header");
let ignores = false;
new IntersectionObserver(([seen]) => {
  const pins = seen.intersectionRatio < 1;
  if (header.classList.contains("pinned") === pins) return;
  if (ignores) return void (ignores = false);
  ignores = true;
  setTimeout(() => ignores = false, 50);
  header.classList.toggle("pinned", pins);
}, { threshold: [1] }).observe(header);
</script>"""
# A header and a bar below that change some time after the page was scrolled, on a page that scrolls smoothly.
LATE_HEADER = """<style>html{scroll-behavior:smooth}body{margin:0}header,footer{position:fixed;width:100%;background:#ff0;height:90px}
header.small{height:30px}footer{bottom:0}footer.up{bottom:200px}</style><header>HEADING</header><footer>BAR</footer>
<div style="height:9000px">text</div><p id=end>END<script>
addEventListener("scroll", () => { const is = scrollY > 0; setTimeout(() => {
  document.querySelector("header").className = is ? "small" : "";
  requestAnimationFrame(() => document.querySelector("footer").className = is ? "up" : "");
}, 400) });
</script>"""
# Kinds of events that scripts are delayed for.
KINDS = ["mousemove", "mouseover", "pointermove", "keydown", "wheel", "touchstart", "pointerdown"]

PAGES = {
    "/fades": FADES,
    **{f"/first-{kind}": FIRST % [kind] for kind in KINDS},
    "/first-late": f"<script>addEventListener('load', () => setTimeout(() => {{ {LATE} }}, 1500))</script><div id=main>",
    "/first-moves": "<script>let moves = 0; addEventListener('mousemove', ({ movementX, movementY }) => {"
    " moves += movementX || movementY ? 1 : 0; if (moves >= 2) main.textContent = 'FULL' })</script><div id=main>",
    "/first-body": "<style>html{background:#fff}body{width:600px;margin:300px auto}</style><p style='height:900px'>"
    "<script>document.body.addEventListener('mousemove', () => main.textContent = 'FULL')</script><div id=main>",
    "/hovers": HOVERS,
    "/window": "<p id=p><script>setInterval(() => p.textContent = [outerWidth >= innerWidth && outerHeight > innerHeight,"
    " screen.width >= outerWidth + screenX && screen.height >= outerHeight + screenY, innerWidth, innerHeight].join(), 20)</script>",
    "/pinned-short": PINNED % 1950,
    "/pinned-long": PINNED % 9000,
    "/late-header": LATE_HEADER,
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
    # Lists that hold only the rows in view, and a page whose content the wheel moves.
    "/rows-box": rows(1000, "height:300px;overflow:auto", "list"),
    "/rows-many": rows(9000, "height:300px;overflow:auto", "list"),
    "/rows-page": rows(600, "", "null"),
    "/rows-all": "<div style='height:300px;overflow:auto'>" + "".join(f"<p>Row {n}</p>" for n in range(99)) + "</div>",
    "/wheel": WHEEL,
    # These begin at the right, with a picture. A lazy one is at the far end of some.
    "/rtl-wide": "<html dir=rtl><img src=/p.png><table><tr>"
    + "".join(f"<td style='min-width:200px'>COLUMN{n}" for n in range(20)) + "</table>",
    "/rtl-wider": "<html dir=rtl><img src=/p.png><div style='width:15000px'>RIGHT</div>",
    "/vertical": VERTICAL % ("html", "", 9000),
    "/vertical-body": VERTICAL % ("body", "", 9000),
    "/vertical-long": VERTICAL % ("html", "", 40000),
    "/vertical-box": VERTICAL % ("main", "html,body{margin:0;height:100%;overflow:hidden}main{width:100vw;height:100vh;overflow:auto}", 9000),
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
