"""Pages that take all memory or all time of their renderer, between good ones."""

import http.server
import sys

FILL = "let a = []; for (;;) { let b = new Uint8Array(64 << 20); b.fill(7); a.push(b) }"
PAGES = {
    "/bomb": f"<title>bomb</title><p>x</p><script>{FILL}</script>",
    "/late": f"<title>late</title><p>x</p><script>setTimeout(() => {{ {FILL} }}, 300)</script>",
    "/spin": "<title>spin</title><p>shown</p><script>for (;;);</script>",
    "/late-spin": "<title>late spin</title><p>shown</p><script>setTimeout(() => { for (;;); }, 500)</script>",
    "/alerts": "<title>alerts</title><p>shown<script>for (;;) alert(1)</script><p>after",
    "/alerts-later": "<title>alerts</title><p>shown<script>setInterval(() => confirm(1), 0)</script><p>after",
}
GOOD = "<title>good</title><p>good page</p>"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = ("<!doctype html>" + PAGES.get(self.path, GOOD)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
