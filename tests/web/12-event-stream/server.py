"""Pages that show their content after a second, next to requests that do not end."""

import http.server
import sys
import time

SCRIPTS = {
    "/": "new EventSource('/events');",
    "/longpoll": "fetch('/hold');",
    "/endless-fetch": "fetch('/hang');",
    "/poll": "setInterval(() => fetch('/tick'), 50);",
    "/socket": "new WebSocket('ws://' + location.host + '/hold');",
    "/beacon": "navigator.sendBeacon('/hold', 'x');",
    "/late-image": "addEventListener('load', () => { new Image().src = '/hold'; });",
    "/stream-then-data": "new EventSource('/events');"
    "fetch('/data').then(r => r.text()).then(t => document.body.append(t));",
    "/worker": "new Worker('/worker.js');",
    "/plain": "",
}
DEAD_IMAGE = "<img src=/hold>"


def page(script, extra=""):
    return (
        "<!doctype html><title>wait</title>" + extra + "<p id=p>LOADING</p><script>" + script +
        "setTimeout(() => { document.getElementById('p').textContent = 'CONTENT READY';"
        "document.title = 'ready' }, 1000)</script>"
    ).encode()


class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path in SCRIPTS:
            self.answer("text/html", page(SCRIPTS[self.path]))
        elif self.path == "/dead-image":
            self.answer("text/html", page("", DEAD_IMAGE))
        elif self.path in ("/events", "/hang"):
            self.send_response(200)
            kind = "text/event-stream" if self.path == "/events" else "application/json"
            self.send_header("Content-Type", kind)
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b": x\n\n")
                    self.wfile.flush()
                    time.sleep(1)
            except OSError:
                pass
        elif self.path == "/hold":
            time.sleep(60)
        elif self.path == "/data":
            time.sleep(0.5)
            self.answer("text/plain", b"DATA ARRIVED")
        elif self.path == "/worker.js":
            self.answer("text/javascript", b"setInterval(() => {}, 100)")
        elif self.path == "/tick":
            self.answer("text/plain", b"")
        else:
            self.send_error(404)

    def do_POST(self):
        self.do_GET()

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
