"""Serves a page whose answer is in the file that is the first argument: ok, or an HTTP status."""

import http.server
import pathlib
import sys

chosen = pathlib.Path(sys.argv[1])


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        answer = chosen.read_text().strip()
        status = 200 if answer == "ok" else int(answer)
        words = "marvellous harvest" if status == 200 else "dreadful failure"
        body = b"" if status == 204 else f"<title>{words}</title><p>The {words} of {self.path}.".encode()
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 18052), Handler)
server.serve_forever()
