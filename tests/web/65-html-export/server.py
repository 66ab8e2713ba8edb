"""A page whose look depends on all of its files: colours by styles, pictures, frames and a script."""

import http.server
import struct
import sys
import zlib

PORT = int(sys.argv[1])
OTHER = f"http://localhost:{PORT}"


def png(red, green, blue):
    """A picture of 60 by 60 pixels."""
    part = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes([red, green, blue]) * 60) * 60
    head = struct.pack(">IIBBBBB", 60, 60, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + part(b"IHDR", head) + part(b"IDAT", zlib.compress(rows)) + part(b"IEND", b"")


HTML = "text/html; charset=utf-8"
STATIC = (
    "<!doctype html><title>Files</title><base href=/deep/><link rel=stylesheet href=one.css integrity=''"
    " crossorigin><h1>Pages as files</h1><div class=a></div><div class=b></div>"
    "<img src=/red.png srcset='/red.png 1x, /never.png 2x'>"
    "<picture><source srcset=/never.png media='(max-width: 1px)'><img src=/moved></picture>"
    f"<iframe src='{OTHER}/frame' width=300 height=200></iframe><p><a href=/static#x>other page</a>"
    "<a href='javascript:void(0)'>nothing</a></p>"
)
FILES = {
    "/static": (HTML, STATIC),
    "/": (
        HTML,
        STATIC + "<noscript><h1>NO SCRIPTS</h1></noscript><p id=out></p><script>"
        "for (let n = 0; n < 5; n++) { const img = new Image(); img.src = `/${['red', 'blue'][n % 2]}.png`; out.append(img); }"
        "const sheet = new CSSStyleSheet(); sheet.replaceSync('body { background: #fec }');"
        "document.adoptedStyleSheets = [sheet]; document.title = 'Built';</script>",
    ),
    "/deep/one.css": ("text/css", "@charset 'x'; @import url(two.css); .a { background: url('/red.png'); height: 90px }"),
    "/deep/two.css": ("text/css", ".b { background: #080; height: 80px } h1 { color: #808; letter-spacing: 1em }"),
    "/frame": (HTML, "<body style='background: gold' onload='document.body.append(1)'><p>framed<img src=red.png>"),
    "/red.png": ("image/png", png(255, 0, 0)),
    "/blue.png": ("image/png", png(0, 0, 255)),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, body = FILES.get(self.path, ("text/plain", ""))
        body = body.encode() if isinstance(body, str) else body
        self.send_response(302 if self.path == "/moved" else 200 if self.path in FILES else 404)
        if self.path == "/moved":
            self.send_header("Location", "/blue.png")
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
