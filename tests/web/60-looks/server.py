"""Pages that look right only if the browser has done more than load them: fonts, colours, sizes, drawings, states."""

import http.server
import struct
import sys
import time
import zlib

from font import boxes

PORT = int(sys.argv[1])


def png(red, green, blue, width=200, height=100):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + bytes((red, green, blue)) * width) * height
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def page(body, head=""):
    return "text/html", f"<!doctype html><meta charset=utf-8><title>looks</title><style>body{{margin:0}}</style>{head}<body>{body}".encode()


FILLER = "<p style='height:900px;margin:0'>filler</p>"
PAGES = {
    # A font that a style sheet asks for and that comes late, and one that a script loads.
    "/late-font": page(
        "<p style='font:40px Boxes;color:#f00'>XXXXXXXXXX</p>",
        "<style>@font-face{font-family:Boxes;src:url(/slow.ttf);font-display:swap}</style>",
    ),
    "/script-font": page(
        "<p id=p style='font:40px serif;color:#f00'>XXXXXXXXXX</p><script>"
        "new FontFace('Boxes', 'url(/font.ttf)').load().then(font => { document.fonts.add(font); p.style.fontFamily = 'Boxes' })"
        "</script>"
    ),
    # White letters on black in the dark; black on white with a red box by day.
    "/scheme": page(
        "<p>SHOWN<div style='width:200px;height:100px'class=box></div>",
        "<style>:root{color-scheme:light dark}.box{background:#f00}"
        "@media(prefers-color-scheme:dark){body{background:#000;color:#fff}.box{background:#00f}}</style>",
    ),
    "/hero": page(
        "<div style='height:100vh;background:#f00'>hero</div>" + FILLER * 3 + "<p>END OF PAGE",
    ),
    "/sticky": page(
        "<div style='position:sticky;top:0;height:50px;background:#f00'>STICKY</div>"
        "<div style='position:fixed;bottom:0;width:100%;height:50px;background:#00f'>FIXED</div>" + FILLER * 6 + "<p>END OF PAGE",
    ),
    "/appear": page(
        "<p>top" + FILLER * 4 + "<div class=a style='background:#f00;height:100px'>APPEARED</div>" + FILLER * 2
        + "<script>new IntersectionObserver(all => all.forEach(one => one.isIntersecting && one.target.classList.add('in')))"
        ".observe(document.querySelector('.a'))</script>",
        "<style>.a{opacity:0;transform:translateX(-100px);transition:opacity .5s,transform .5s}.a.in{opacity:1;transform:none}</style>",
    ),
    "/visibility": page(
        "".join(
            f"<div style='content-visibility:auto;contain-intrinsic-size:auto 500px'><p style='height:480px'>SECTION{n}"
            "<span style='display:block;width:100px;height:50px;background:#f00'></span></div>"
            for n in range(12)
        )
    ),
    "/drawing": page(
        "<div id=host></div><canvas id=c width=300 height=100></canvas><script>"
        "const draw = canvas => { const to = canvas.getContext('2d'); to.fillStyle = '#f00'; to.fillRect(0, 0, 300, 100) };"
        "draw(c); const root = host.attachShadow({mode: 'open'}); root.innerHTML = '<canvas width=300 height=100></canvas>';"
        "draw(root.firstChild)</script>"
    ),
    "/webgl": page(
        "<canvas id=c width=300 height=100></canvas><script>const gl = c.getContext('webgl');"
        "gl.clearColor(1, 0, 0, 1); gl.clear(gl.COLOR_BUFFER_BIT)</script>"
    ),
    # Style sheets that no element holds.
    "/styled": page(
        "<p class=a>SHOWN</p><div class=b style='width:200px;height:100px'></div><div id=host></div><style id=s></style><script>"
        "s.sheet.insertRule('.b { background: #f00 }');"
        "const sheet = new CSSStyleSheet(); sheet.replaceSync('.a { color: #00f } .c { width: 200px; height: 100px; background: #f00 }');"
        "document.adoptedStyleSheets = [sheet]; const root = host.attachShadow({mode: 'open'});"
        "root.innerHTML = '<div class=c>INSIDE</div>'; root.adoptedStyleSheets = [sheet]</script>"
    ),
    "/formula": page(
        "<p>FORMULA <math><mfrac><mn>7351</mn><mi>x</mi></mfrac><mo>+</mo><msqrt><mn>9462</mn></msqrt></math>"
    ),
    "/picture": page(
        "<picture><source type=image/x-none srcset=/blue.png><source media='(min-width:9000px)' srcset=/blue.png>"
        "<source media='(min-width:1px)' srcset='/red.png?w 200w, /red.png?x 400w'><img src=/green.png></picture>"
        "<img srcset='/red.png?only 1x'>"
    ),
    "/form": page(
        "<input id=t value=old><input id=w type=password><input id=c type=checkbox><input id=d type=checkbox checked><textarea id=a>old</textarea>"
        "<select id=s><option>one<option>two</select><p>SHOWN<script>"
        "t.value = 'TYPED'; w.value = 'SECRET'; c.checked = true; d.checked = false; a.value = 'WRITTEN'; s.value = 'two'</script>"
    ),
    "/background": page(
        "<p style='background:#f00;color:#fff;height:100px'>WHITE ON RED</p>"
    ),
    "/red.png": ("image/png", png(255, 0, 0)),
    "/green.png": ("image/png", png(0, 255, 0)),
    "/blue.png": ("image/png", png(0, 0, 255)),
    "/font.ttf": ("font/ttf", boxes()),
    "/slow.ttf": ("font/ttf", boxes()),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        if path not in PAGES:
            self.send_error(404)
            return
        if path == "/slow.ttf":
            time.sleep(1)
        kind, body = PAGES[path]
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
