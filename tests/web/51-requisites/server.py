"""A page whose requisites are named by other requisites, in forms that wget does not read."""

import base64
import http.server
import sys

SVG = "image/svg+xml"
FILES = {
    "/": (
        "text/html",
        "<!doctype html><title>levels</title><link rel=stylesheet href=/css/one.css integrity=sha256-x>"
        "<img src=/i/a.png srcset='/i/b.png 1x, /i/c.png 2x'>"
        "<svg><use xlink:href='/sprite.svg#x'/></svg><object data=/drawing.svg></object>"
        "<iframe src=/frame.html></iframe><iframe src=/data.xml></iframe>",
    ),
    "/css/one.css": ("text/css", "@import 'two.css';"),
    "/css/two.css": ("text/css", "@import url(deep/three.css) screen;"),
    "/css/deep/three.css": (
        "text/css",
        "p{background:image-set('../../i/d.png' 1x, url(../../i/e.png) 2x)}"
        "@font-face{font-family:f;src:url(f.woff2)}",
    ),
    "/sprite.svg": (SVG, "<svg xmlns='http://www.w3.org/2000/svg'><image href='i/f.png'/></svg>"),
    "/drawing.svg": (
        SVG,
        "<?xml-stylesheet href='/css/svg.css'?><svg xmlns='http://www.w3.org/2000/svg'/>",
    ),
    "/css/svg.css": ("text/css", "rect{fill:url(/i/g.png)}"),
    "/frame.html": ("text/html", "<!doctype html><img src=/i/h.png><img src=/i/missing.png>"),
    "/data.xml": ("text/xml", "<?xml version='1.0'?><?xml-stylesheet type='text/xsl' href='/x.xsl'?><a/>"),
    "/x.xsl": (
        "text/xsl",
        "<xsl:stylesheet xmlns:xsl='http://www.w3.org/1999/XSL/Transform' version='1.0'>"
        "<xsl:import href='/y.xsl'/></xsl:stylesheet>",
    ),
    "/y.xsl": (
        "text/xsl",
        "<xsl:stylesheet xmlns:xsl='http://www.w3.org/1999/XSL/Transform' version='1.0'/>",
    ),
    "/css/deep/f.woff2": ("font/woff2", "font"),
    "/not-brotli": ("text/html", "<!doctype html><title>br</title><img src=/styled.png>"),
    "/unknown": ("text/html", "<!doctype html><title>unknown</title>"),
}
# In codings that no client asks for: each page shows a picture, the first one by its style sheet, too.
CODED = {
    "/brotli": (
        "text/html",
        "br",
        "G1sAAAR0cGgNpDJ4Af2OccB+LS86wa2629j3ig6l0alFKEdu0E8itXUwzmuQ65JbBOPSN/GmBg==",
    ),
    "/br.css": ("text/css", "br", "GyQAwIzDOEa8GZX2FjVISkvfFJPbS0E0yaY1oJAIMnssLA3wKQc="),
    "/zstd": ("text/html", "zstd", "KLUv/SA96QEAPCFkb2N0eXBlIGh0bWw+PHRpdGxlPnpzdGQ8L3RpdGxlPjxpbWcgc3JjPS9waWN0dXJlLnBuZz5zaG93bg=="),
    "/picture.png": ("image/png", "zstd", "KLUv/SAIQQAAiVBORw0KGgo="),
    # 16 MiB of zeros.
    "/bomb": ("text/html", "br", "y///P/gnAOKxQCD3/o///3/wTwDEYRGA7v3f"),
}
CODINGS = {"/not-brotli": "br", "/unknown": "compress"}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, text = FILES.get(self.path, ("image/png", "\x89PNG"))
        body, coding = text.encode("latin-1"), CODINGS.get(self.path)
        if self.path in CODED:
            kind, coding, text = CODED[self.path]
            body = base64.b64decode(text)
        self.send_response(404 if "missing" in self.path else 200)
        self.send_header("Content-Type", kind)
        if coding:
            self.send_header("Content-Encoding", coding)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
