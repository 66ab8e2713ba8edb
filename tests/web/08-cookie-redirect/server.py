"""Sites that set a cookie and redirect: to the page itself, by another page, on a file."""
import http.server
import sys


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def page(self):
        path = self.path.encode()
        body = b"<!doctype html><title>Front page " + path + b"</title><h1>news</h1><a href=/x>x</a>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def go(self, location, cookie=None):
        self.send_response(302)
        if cookie:
            self.send_header("Set-Cookie", cookie)
        self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def do_GET(self):
        cookies = self.headers.get("Cookie") or ""
        if self.path == "/set":
            self.go("/way", "way=1; Path=/; HttpOnly")
        elif self.path == "/way" and "way=1" not in cookies:
            self.go("/set")
        elif self.path not in ("/way", "/set") and "seen=1" not in cookies:
            self.go(self.path, "seen=1; Path=/")
        else:
            self.page()

    do_HEAD = do_GET

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
