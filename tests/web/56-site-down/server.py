"""A site that goes down. /mode/MODE sets how it answers from then on: ok, silent (closes the connection), error (500)."""

import http.server
import sys

PAGE = b"<!doctype html><title>THE ARTICLE</title><p>Text of the article.<p><a href=/next>next</a>"
mode = "ok"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global mode
        if self.path.startswith("/mode/"):
            mode = self.path.removeprefix("/mode/")
            self.answer(200, b"set")
        elif mode == "ok":
            self.answer(200, PAGE)
        elif mode == "error":
            self.answer(500, b"<!doctype html><title>DOWN</title><p>The database is down.")
        else:
            self.close_connection = True

    def answer(self, status, body):
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
