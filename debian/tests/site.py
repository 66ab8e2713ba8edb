"""A page on the loopback interface; prints its port. usage: site.py GO"""

import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = b"<!doctype html><title>A page to keep</title><p>Text of the page.</p>"


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        while self.path == "/held" and not os.path.exists(sys.argv[1]):
            time.sleep(0.1)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(PAGE)))
        self.end_headers()
        self.wfile.write(PAGE)

    do_HEAD = do_GET


server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
