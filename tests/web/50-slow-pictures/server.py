"""Pages with 300 and 24 pictures, of which each takes 0.2 s."""

import http.server
import sys
import threading



def page(count):
    return "<!doctype html><title>slow</title><link rel=stylesheet href=/s.css>" + "".join(
        f"<img src='/picture/{n}.png'>" for n in range(count)
    )


STYLE = b"body { background: url(picture/0.png) }"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path.startswith("/picture/"):
            threading.Event().wait(0.2)
            body, kind = b"\x89PNG\r\n\x1a\n", "image/png"
        elif self.path == "/s.css":
            body, kind = STYLE, "text/css"
        else:
            body, kind = page(24 if self.path == "/few" else 300).encode(), "text/html"
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
