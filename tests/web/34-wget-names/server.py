"""Addresses that are no good file names, and answers in encodings that nobody asked for."""

import base64
import gzip
import http.server
import sys
import zlib

PICTURE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
CAFE = b"<!doctype html><title>CAFE</title><a href=/next>next</a><img src=/m%FCnchen.png>"
PAGES = {
    "/caf%E9": CAFE,
    "/caf%E9.html": CAFE,
    "/%93%FA%96%7B.html": CAFE,
    "/gallery": b"<!doctype html><title>gallery</title><base href=/><a href='/full?img=1'>"
    b"<img src='/full?img=1'></a> <a href=/other.html>o</a> <a href='gallery'>self</a>",
    "/gallery.html": b"<!doctype html><title>gallery</title><a href='/full?img=1'>"
    b"<img src='/full?img=1'></a> <a href=/other.html>o</a>",
    # A file and a directory of the same name, in both orders.
    "/conflict": b"<!doctype html><title>conflict</title><img src=/media><img src=/media/x.png>"
    b"<img src=/other/x.png><img src=/other>",
    "/gzip": b"<!doctype html><title>gzip</title><link rel=stylesheet href=/gzip.css><img src=/inside.png>",
    "/gzip.css": b"body { background: url(back.png) }",
    "/deflate": b"<!doctype html><title>deflate</title><img src=/inside.png>",
    "/download": b"<!doctype html><title>download</title><img src='/get.php?id=1'><iframe src='/get?id=2'></iframe>",
    "/next": b"<!doctype html><title>other</title>",
    "/other.html": b"<!doctype html><title>other</title>",
}
PICTURES = ("/full?img=1", "/media", "/other", "/get.php?id=1")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, kind, extra = 200, "text/html", []
        if self.path in PAGES:
            body = PAGES[self.path]
            kind = "text/css" if self.path.endswith(".css") else kind
        elif self.path in PICTURES or self.path.endswith(".png"):
            body, kind = PICTURE, "image/png"
        elif self.path == "/get?id=2":
            body, kind = b"%PDF-1.4\n", "application/octet-stream"
            extra.append(("Content-Disposition", 'attachment; filename="report 2026.pdf"'))
        elif self.path == "/document":
            body, kind = b"%PDF-1.4\n", "application/pdf"
        else:
            status, body = 404, b"<!doctype html><title>WRONG URL</title>"
        if self.path.startswith("/gzip"):
            body = gzip.compress(body)
            extra.append(("Content-Encoding", "gzip"))
        if self.path == "/deflate":
            body = zlib.compress(body)
            extra.append(("Content-Encoding", "deflate"))
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in extra:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
