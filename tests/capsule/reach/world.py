#!/usr/bin/python3
"""Two web servers for tests, in a network of the test's own.

usage: world.py SITE          a public site at the address SITE, port 8080: its page asks for everything that the victims have
       world.py               the victims: one server on port 8099 of every address, which prints who was asked for what
Each says to the service manager when it listens.
"""

import http.server
import os
import socket
import sys

VICTIMS = ["127.0.0.1", "169.254.169.254", "192.168.77.1", "10.9.9.2", "100.100.100.200", "93.184.216.99", "metadata.test"]
PORT = 8099


def page() -> str:
    parts = ["<!doctype html><title>A public site</title><p>Nothing to see."]
    for victim in VICTIMS:
        url = f"http://{victim}:{PORT}"
        parts.append(f"<link rel=stylesheet href='{url}/style'><img src='{url}/img'><iframe src='{url}/frame'></iframe>")
        parts.append(f"<script>fetch('{url}/post', {{method: 'POST', mode: 'no-cors', body: 'x'}})</script>")
    return "".join(parts)


class Site(http.server.BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        target = self.path.removeprefix("/to/")
        if target != self.path:
            self.send_response(302)
            self.send_header("Location", f"http://{target}:{PORT}/redirected")
            self.end_headers()
            return
        self.answer(page())

    def answer(self, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


class Victim(Site):
    def do_GET(self) -> None:
        print("asked", self.connection.getsockname()[0], self.command, self.path, flush=True)
        self.answer("<!doctype html><title>SECRET</title>")

    do_POST = do_GET


def main() -> None:
    address, handler = ((sys.argv[1], 8080), Site) if len(sys.argv) > 1 else (("0.0.0.0", PORT), Victim)
    server = http.server.ThreadingHTTPServer(address, handler)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])
    server.serve_forever()


main()
