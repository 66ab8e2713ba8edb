"""Pages and pictures whose addresses are too long for a file name."""

import http.server
import struct
import sys
import zlib


def png(red, green, blue):
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)
    pixels = zlib.compress(bytes([0, red, green, blue]))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


LONG = "a" * 300
RED, GREEN = png(255, 0, 0), png(0, 255, 0)
PICTURES = {
    f"/img?u={LONG}red": RED,
    f"/img?u={LONG}green": GREEN,
    "/" + "d" * 300 + "/red.png": RED,
    "/" + "d" * 300 + "/green.png": GREEN,
    "/" + "e" * 400 + ".png": RED,
    "/" + "e" * 399 + "f.png": GREEN,
}
KEYS = list(PICTURES)
PAGES = {
    "/query": KEYS[:2],
    "/dirs": KEYS[2:4],
    "/paths": KEYS[4:],
    "/" + "e" * 280: KEYS[:2],
    "/" + "f" * 240: KEYS[:2],
    f"/long?{LONG}": KEYS[:2],
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        status, kind = 200, "text/html"
        if self.path in PICTURES:
            body, kind = PICTURES[self.path], "image/png"
        elif self.path in PAGES:
            pictures = "".join(f"<img src='{key}'>" for key in PAGES[self.path])
            body = f"<!doctype html><title>long</title><body>{pictures}</body>".encode()
        else:
            status, body = 404, b""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
