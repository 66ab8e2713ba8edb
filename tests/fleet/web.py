#!/usr/bin/env python3
"""A web server with many hosts, one for each address of its network namespace. It logs each request when it arrives.

    web.py LOG       one line for each request: seconds since 1970, client, host, path

/wait/MS/NAME          answers after MS milliseconds
/tree/DEPTH/WIDTH/NAME has WIDTH links, which are spread over HOSTS hosts if ?hosts=HOSTS is there, and DEPTH levels of them
everything else        answers at once
"""

import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

LOCK = threading.Lock()


def links(parts, host):
    depth, width, name = parts.path.split("/")[2:5]
    hosts = int(parse_qs(parts.query).get("hosts", ["1"])[0])
    if int(depth) == 0:
        return []
    prefix = host.rsplit(".", 1)[0]
    paths = (f"/tree/{int(depth) - 1}/{width}/{name}.{n}?hosts={hosts}" for n in range(int(width)))
    return [f"http://{prefix}.{1 + sum(map(ord, path)) % hosts}{path}" for path in paths]


class Host(BaseHTTPRequestHandler):
    def do_GET(self):
        host = self.connection.getsockname()[0]
        with LOCK:
            self.server.log.write(f"{time.time():.3f} {self.client_address[0]} {host} {self.path}\n")
            self.server.log.flush()
        parts = urlsplit(self.path)
        kind = parts.path.split("/")[1]
        if kind == "robots.txt":
            self.send_error(404)
            return
        if kind == "wait":
            time.sleep(int(parts.path.split("/")[2]) / 1000)
        found = links(parts, host) if kind == "tree" else []
        body = "<title>{}</title>{}".format(parts.path, "".join(f'\n<a href="{url}">link</a>' for url in found)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 256


with open(sys.argv[1], "a", encoding="utf-8") as log:
    server = Server(("0.0.0.0", 80), Host)
    server.log = log
    server.serve_forever()
