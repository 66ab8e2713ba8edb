"""A page that shows who asked for it: user agent and languages."""

import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        asked = f"{self.headers.get('User-Agent')}|{self.headers.get('Accept-Language')}|"
        body = f"<!doctype html><title>who</title><p>{asked}</p>".encode()
        refused = "Headless" in asked or "curl" in asked or "Wget" in asked
        self.send_response(403 if refused else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("X-Asked", asked)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
