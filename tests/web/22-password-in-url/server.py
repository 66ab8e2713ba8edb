"""A server that asks for the user name "reader" and the password "s3cretPW"."""

import base64
import http.server
import sys

ALLOWED = "Basic " + base64.b64encode(b"reader:s3cretPW").decode()
PAGE = (
    b"<!doctype html><html><head><title>members</title><link rel=stylesheet href=/s.css></head>"
    b"<body><a href=/inside>inside</a> <a href=sub/page>sub</a> <img src=/i.png>"
    b"<p>MEMBERS ONLY</p></body></html>"
)


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.headers.get("Authorization") != ALLOWED:
            self.answer(401, b"<!doctype html><title>LOGIN NEEDED</title>", "text/html")
        elif self.path == "/s.css":
            self.answer(200, b"body { background: url(back.png) }", "text/css")
        elif self.path.endswith(".png"):
            self.answer(200, b"\x89PNG\r\n\x1a\n", "image/png")
        else:
            self.answer(200, PAGE, "text/html")

    def answer(self, status, body, kind):
        self.send_response(status)
        if status == 401:
            self.send_header("WWW-Authenticate", 'Basic realm="members"')
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
