"""A server that limits requests. For 8 s from the first request for each path, it answers with a
refusal and names in some form when it will have the article. /always refuses every request."""

import http.server
import sys
import time

WAIT = 8
FORMS = {
    "imf": "%a, %d %b %Y %H:%M:%S GMT",
    "rfc850": "%A, %d-%b-%y %H:%M:%S GMT",
    "asctime": "%a %b %d %H:%M:%S %Y",
}
FIRST = {}


def retry_after(path):
    if path in ("/seconds", "/busy"):
        return str(WAIT)
    if path == "/always":
        return "1"
    form = FORMS.get(path[1:])
    return time.strftime(form, time.gmtime(time.time() + WAIT)) if form else None


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        known = ["/seconds", "/busy", "/none", "/always"] + ["/" + form for form in FORMS]
        if self.path == "/gone":
            return self.answer(410, "GONE")
        if self.path not in known:
            return self.answer(404, "MISSING")
        first = FIRST.setdefault(self.path, time.monotonic())
        if self.path != "/always" and time.monotonic() - first > WAIT:
            return self.answer(200, "ARTICLE")
        status = 503 if self.path == "/busy" else 429
        return self.answer(status, "SLOW DOWN", retry_after(self.path))

    def answer(self, status, text, wait=None):
        page = f'<!doctype html><title>{text}</title><h1>{text}</h1><a href="/{status}">next</a>'
        self.send_response(status)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(page)))
        if wait:
            self.send_header("Retry-After", wait)
        self.end_headers()
        self.wfile.write(page.encode())

    def log_message(self, *arguments):
        pass


if __name__ == "__main__":
    http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
