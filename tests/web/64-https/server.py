"""Speaks TLS, with a certificate of authority.pem for secure.test, mixed.test and plain.example.com, and plain HTTP on the same port.
On the ports of HTTP and HTTPS, plain.example.com has two different sites."""

import http.server
import pathlib
import socket
import ssl
import struct
import sys
import threading
import zlib

PORT = int(sys.argv[1])
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
TLS.load_cert_chain(pathlib.Path(__file__).parent / "server.pem")


def picture(colour):
    chunk = lambda kind, data: struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    rows = (b"\0" + bytes(colour) * 64) * 64
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 64, 64, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


# A picture of plain HTTP, which a browser asks for by HTTPS instead, and a script of plain HTTP, which it refuses.
MIXED = f"""<!doctype html><title>mixed</title><p>MIXED <img src="http://mixed.test:{PORT}/red.png">
<script src="http://mixed.test:{PORT}/script.js"></script>"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        is_secure = isinstance(self.connection, ssl.SSLSocket)
        host = self.headers["Host"]
        if self.path == "/mixed":
            self.answer("text/html", MIXED.encode())
        elif self.path == "/red.png":
            self.answer("image/png", picture((255, 0, 0)))
        elif self.path == "/script.js":
            self.answer("text/javascript", b"document.write('<p>SCRIPT OF PLAIN HTTP')")
        elif self.path.startswith("/strict") and not is_secure:
            self.send_response(301)
            self.send_header("Location", f"https://{host}{self.path}")
            self.send_header("Content-Length", "0")
            self.end_headers()
        elif self.path.startswith("/strict"):
            # Of a link with http:, the browser knows by then that the site is for HTTPS alone.
            link = f"<a href='http://{host}/strict/next'>next</a>"
            self.answer("text/html", f"<!doctype html><title>strict</title><p>STRICT {self.path} {link}".encode())
        elif host == "plain.example.com":
            site = "ANOTHER SITE" if is_secure else "PLAIN SITE"
            self.answer("text/html", f"<!doctype html><title>plain</title><p>{site}".encode())
        elif self.path == "/services":
            self.answer("text/html", b"<!doctype html><title>services</title><p>SERVICES")
        else:
            self.send_error(404)

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        if self.path.startswith("/strict"):
            self.send_header("Strict-Transport-Security", "max-age=86400; includeSubDomains")
        # Nothing answers there.
        self.send_header("Alt-Svc", f'h3=":{PORT}"; ma=86400')
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def finish_request(self, request, address):
        first = request.recv(1, socket.MSG_PEEK)
        if first == b"\x16":
            try:
                with TLS.wrap_socket(request, server_side=True) as secure:
                    Handler(secure, address, self)
            except OSError:
                pass
        elif first:
            Handler(request, address, self)


for port in (80, 443):
    threading.Thread(target=Server(("127.0.0.1", port), Handler).serve_forever, daemon=True).start()
Server(("127.0.0.1", PORT), Handler).serve_forever()
