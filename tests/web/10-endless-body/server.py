"""Answers without an end: a radio, an event stream, one that is silent, a page that never ends."""
import http.server
import sys
import threading

KINDS = {
    "/radio": ("audio/mpeg", b"\0" * 4096),
    "/events": ("text/event-stream", b": tick\n\n"),
    "/silent": ("text/event-stream", b""),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, piece = KINDS.get(self.path, ("text/html", b"<!doctype html><title>x</title><p>x"))
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.end_headers()
        try:
            while True:
                self.wfile.write(piece)
                self.wfile.flush()
                threading.Event().wait(0.25)
        except OSError:
            pass

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
