"""Addresses that are not UTF-8, and a page that links to a picture which it shows. server.py PORT"""
import base64
import http.server
import sys

IMAGE = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNk+A8AAQUBAScY42YAAAAASUVORK5CYII="
)
ODD = ("/caf%E9", "/caf%E9.html", "/%93%FA%96%7B.html")
GALLERY = "<!doctype html><title>gallery</title>%s<a href='/full?img=1'><img src='/full?img=1'></a> <a href=/other.html>o</a>%s"
PAGES = {
    **{path: "<!doctype html><title>CAFE</title><a href=/next>next</a><img src=/m%FCnchen.png>" for path in ODD},
    "/gallery": GALLERY % ("<base href=/>", " <a href='gallery'>self</a>"),
    "/gallery.html": GALLERY % ("", ""),
    "/next": "<!doctype html><title>other</title>",
    "/other.html": "<!doctype html><title>other</title>",
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, kind = 200, "text/html"
        if self.path == "/full?img=1" or self.path.endswith(".png"):
            kind, body = "image/png", IMAGE
        elif self.path in PAGES:
            body = PAGES[self.path].encode()
        else:
            status, body = 404, b"<!doctype html><title>WRONG URL</title>"
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
