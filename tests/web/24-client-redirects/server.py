"""Pages that go elsewhere by themselves."""

import http.server
import sys

TARGET = "<title>TARGET</title><p>TARGET BODY <a href=rel>relative</a>"


def later(script, ms=1500):
    return f"<title>stub</title><script>setTimeout(() => {{ {script} }}, {ms})</script>"


PAGES = {
    "/meta": "<meta http-equiv=refresh content='0; url=/dir/target'><title>stub</title>",
    "/meta-slow": "<meta http-equiv=refresh content='2;url=/dir/target'><title>stub</title>wait",
    "/script": "<title>stub</title><script>location.replace('/dir/target')</script>",
    "/script-late": later("location = '/dir/target'"),
    "/script-last-moment": later("location = '/dir/target'", 2995),
    "/other-host": later("location = 'http://localhost:' + location.port + '/dir/target'"),
    "/post": "<title>stub</title><body onload='f.submit()'><form id=f method=post action=/dir/target></form>",
    "/cookie-wall": "<title>wall</title><p><script>if (document.cookie.includes('seen'))"
    "document.write('BEHIND THE WALL'); else { document.cookie = 'seen=1'; location.reload() }</script>",
    "/reload": "<title>again</title><p>AGAIN<script>setTimeout(() => location.reload(), 1000)</script>",
    "/meta-reload": "<meta http-equiv=refresh content=1><title>again</title><p>AGAIN",
    "/counter": "<title>again</title><p>AGAIN<script>let n = 0;"
    "setInterval(() => { location = '/counter?' + (++n) }, 1000)</script>",
    "/dead-end": later("location = 'http://127.0.0.1:1/'"),
    "/download-later": later("location = '/file.zip'"),
    "/push-state": "<title>pushed</title><script>history.pushState(0, '', '/dir/pushed')</script><a href=rel>r</a>",
    "/dir/target": TARGET,
    "/dir/rel": "<title>REL</title>",
    "/rel": "<title>WRONG PAGE</title>",
}
CHAIN = 10
for number in range(1, CHAIN + 1):
    end = "/dir/target" if number == CHAIN else f"/chain/{number + 1}"
    PAGES[f"/chain/{number}"] = f"<title>stub</title><script>location = '{end}'</script>"


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.do_GET()

    def do_GET(self):
        path = self.path.split("?")[0]
        headers = {"Content-Type": "text/html"}
        if path == "/refresh-header":
            body, headers["Refresh"] = "<title>stub</title>", "0; url=/dir/target"
        elif path == "/file.zip":
            body, headers["Content-Type"] = "PK", "application/zip"
        elif path in PAGES:
            body = "<!doctype html>" + PAGES[path]
        else:
            self.send_error(404)
            return
        self.send_response(200)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
