"""Headers that no RFC allows, and that browsers accept."""
import socketserver
import sys

HEADERS = {
    "/good": b"X-A: b\r\n",
    "/space-in-name": b"Content Security: x\r\n",
    "/space-before-colon": b"X-A : b\r\n",
    "/control": b"Set-Cookie: x=\x01\x02; path=/\r\n",
    "/high": b"X-Name: caf\xe9\r\n",
    "/lf-only": b"X-A: b\n",
    "/nocolon": b"garbage line\r\n",
    "/folded": b"X-A: b\r\n c\r\n",
    "/big": b"X-A: " + b"a" * 70000 + b"\r\n",
    "/bigger": b"X-A: " + b"a" * 250000 + b"\r\n",
    "/many": b"".join(b"X-%d: a\r\n" % number for number in range(1000)),
    "/noreason": b"",
    "/two-lengths": b"Content-Length: 52\r\n",
}


class Handler(socketserver.StreamRequestHandler):
    def handle(self):
        words = self.rfile.readline().split()
        while self.rfile.readline().strip():
            pass
        path = words[1].decode() if len(words) > 1 else "/"
        body = b"<!doctype html><title>it works</title><h1>fine</h1> "
        status = b"HTTP/1.1 200\r\n" if path == "/noreason" else b"HTTP/1.1 200 OK\r\n"
        end = b"Content-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        self.wfile.write(status + b"Content-Type: text/html\r\n" + HEADERS.get(path, b"") + end + body)


socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
