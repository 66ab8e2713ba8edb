"""Documents whose type, name or title is not what one expects, and addresses with unusual letters."""

import http.server
import struct
import sys
import time
import zlib

PORT = int(sys.argv[1])
HTML = b"<!doctype html><meta charset=utf-8><title>types</title><p>SHOWN <a href=/next>next</a>"
DRAWING = b"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path fill='red' d='M0 0h1v1H0z'/></svg>"


def png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\0\0" * 200) * 100
    header = struct.pack(">IIBBBBB", 200, 100, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pdf():
    """One page with the word SHOWN."""
    text = b"BT /F1 24 Tf 72 700 Td (SHOWN) Tj ET"
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
        b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        b"<</Length %d>>stream\n%s\nendstream" % (len(text), text),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    out, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(out))
        out += b"%d 0 obj%s endobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    return out + b"xref\n0 6\n0000000000 65535 f \n%strailer<</Size 6/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (table, len(out))


def wave():
    samples = b"\x80" * 8000
    return b"RIFF" + struct.pack("<L", 36 + len(samples)) + b"WAVEfmt " + struct.pack("<LHHLLHH", 16, 1, 1, 8000, 8000, 1, 8) \
        + b"data" + struct.pack("<L", len(samples)) + samples


def html(body, head=""):
    return {"Content-Type": "text/html; charset=utf-8"}, f"<!doctype html>{head}<body>{body}".encode()


PAGES = {
    "/document.pdf": ({"Content-Type": "application/pdf"}, pdf()),
    "/picture": ({"Content-Type": "image/png"}, png()),
    "/sound": ({"Content-Type": "audio/wav"}, wave()),
    "/attached": ({"Content-Type": "text/html", "Content-Disposition": "attachment; filename=page.html"}, HTML),
    "/octets": ({"Content-Type": "application/octet-stream"}, HTML),
    "/no-type": ({}, HTML),
    "/plain": ({"Content-Type": "text/plain; charset=utf-8"}, HTML),
    "/twice": ({"Content-Type": "text/html;charset=utf-8; text/plain"}, HTML),
    "/broken.xhtml": (
        {"Content-Type": "application/xhtml+xml"},
        b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title>types</title></head><body><p>SHOWN</p>"
        b"<p>before<br></p></body></html>",
    ),
    "/good.xhtml": (
        {"Content-Type": "application/xhtml+xml"},
        b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><head><title>types &amp; more</title></head><body>"
        b"<p>SHOWN <a href='/next?a=1&amp;b=2'>next</a></p></body></html>",
    ),
    "/nul": ({"Content-Type": "text/html"}, b"<!doctype html><title>ty\0pes</title><p>SH\0OWN <a href=/ne\0xt>x</a><p>AFTER"),
    "/wide.txt": ({"Content-Type": "text/plain"}, "\ufeffSHOWN text of Windows \u4e2d\u6587\r\n".encode("utf-16-le")),
    "/svg-title": html("<svg><title>close</title></svg><p>SHOWN", "<svg><title>menu</title></svg><title>RIGHT</title>"),
    "/empty-title": html("<h1>heading</h1><p>SHOWN", "<title></title>"),
    "/tag-title": html("<p>SHOWN", "<title>\n  It starts with a <textarea>  &amp; ends\n</title>"),
    "/long-title": html("<p>SHOWN", "<title>" + "long title " * 1000 + "</title>"),
    "/head-405": html("<p>SHOWN", "<title>types</title>"),
    "/data-icon": html("<p>SHOWN", "<title>types</title><link rel=icon href=\"data:image/svg+xml,"
                       "<svg xmlns='http://www.w3.org/2000/svg'><text y='1em'>x</text></svg>\">"),
    "/svg-icon": html("<p>SHOWN", "<title>types</title><link rel=icon type=image/svg+xml href=/icon.svg>"),
    "/camera": html("<p>SHOWN<img src=/stream width=200 height=100>", "<title>types</title>"),
    "/icon.svg": ({"Content-Type": "image/svg+xml"}, DRAWING),
}
# Addresses that are pages, too. wget and browsers ask for the lone bar in different forms.
for path in ("/a;b=1;c", "/a//b", "/a|b", "/a%7Cb", "/c'd", "/c%27d", "/e(f)", "/g$h!*", "/i@j:k", "/dir/x;p"):
    PAGES[path] = html("<p>SHOWN<a href='./sibling'>x</a>", "<title>types</title>")


class Handler(http.server.BaseHTTPRequestHandler):
    def do_HEAD(self):
        self.send_error(405)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/stream":
            self.stream()
            return
        if path not in PAGES:
            self.send_error(404)
            return
        headers, body = PAGES[path]
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def stream(self):
        """A camera: one picture after another in one answer, for as long as the client wants."""
        self.send_response(200)
        self.send_header("Content-Type", "multipart/x-mixed-replace; boundary=next")
        self.end_headers()
        picture = png()
        try:
            for _ in range(600):
                self.wfile.write(b"--next\r\nContent-Type: image/png\r\nContent-Length: %d\r\n\r\n%s\r\n" % (len(picture), picture))
                time.sleep(0.1)
        except OSError:
            pass

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
