#!/usr/bin/env python3
"""A small web site for tests: ordinary, slow, endless, broken and hostile pages.

    tests/site/server.py --port 8123          one line "listening on http://…/" when ready
    tests/site/server.py --port 0             a free port, named in that line

Needs nothing but Python's standard library. The requests seen so far are at /log, as JSON.
"""

import argparse
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import files
import pages

ENDLESS_CHUNK = b"<p>and another line of a page that never ends</p>\n" * 20


class Handler(BaseHTTPRequestHandler):
    """Answers GET and HEAD from the ROUTES table and the numbered families below it."""

    protocol_version = "HTTP/1.1"
    server_version = "archivist-test-site"

    def do_GET(self):
        self.answer(body=True)

    def do_HEAD(self):
        self.answer(body=False)

    def answer(self, body):
        self.with_body = body
        parts = urlsplit(self.path)
        self.server.note(self.command, self.path, self.headers.get("User-Agent", ""))
        query = {key: values[-1] for key, values in parse_qs(parts.query, keep_blank_values=True).items()}
        route = ROUTES.get(parts.path)
        if route:
            return route(self, query)
        family, _, number = parts.path.lstrip("/").partition("/")
        if family in FAMILIES and number.isascii() and number.isdigit() and len(number) < 7:
            return FAMILIES[family](self, int(number))
        self.page(pages.missing(), status=404)

    def page(self, text, status=200, charset="utf-8", headers=()):
        body = text if isinstance(text, bytes) else text.encode("utf-8")
        self.reply(body, f"text/html; charset={charset}" if charset else "text/html", status, headers)

    def reply(self, body, content_type, status=200, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.with_body:
            self.wfile.write(body)

    def redirect(self, target, status=302):
        self.reply(b"", "text/plain", status, [("Location", target)])

    def stream(self, chunks):
        """Sends chunks until they end or the reader goes away."""
        self.close_connection = True
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Connection", "close")
        self.end_headers()
        if not self.with_body:
            return
        for chunk in chunks:
            if self.server.stopping.is_set():
                return
            self.wfile.write(chunk)
            self.wfile.flush()

    def log_message(self, format, *arguments):
        pass


def redirect_chain(handler, number):
    """/redirect/3 -> /redirect/2 -> /redirect/1 -> /redirected, with three kinds of status."""
    target = f"/redirect/{number - 1}" if number > 1 else "/redirected"
    handler.redirect(target, (301, 302, 307)[number % 3])


def slow(handler, query):
    time.sleep(min(float(query.get("s", 2)), 60))
    handler.page(pages.simple("Slow page", "<p>It took a while.</p>"))


def endless(handler, query):
    """Streams for ever; as fast as the reader takes it with ?fast, else two chunks a second: a browser draws each."""

    def chunks():
        yield pages.endless_head()
        while True:
            yield ENDLESS_CHUNK
            if "fast" not in query:
                time.sleep(0.5)

    handler.stream(chunks())


def hang(handler, query):
    """Accepts the request and never answers."""
    handler.close_connection = True
    handler.server.stopping.wait(600)


def large(handler, query):
    size = min(int(query.get("mb", 20)), 1000)
    handler.stream(b"x" * (1 << 20) for _ in range(size))


def cut(handler, query):
    """Promises more bytes than it sends."""
    handler.close_connection = True
    handler.send_response(200)
    handler.send_header("Content-Type", "text/html")
    handler.send_header("Content-Length", "100000")
    handler.end_headers()
    handler.wfile.write(pages.simple("Cut off", "<p>Half of a").encode())


def feed(handler, query):
    host, port = handler.server.server_address[:2]
    handler.reply(pages.feed(f"http://{host}:{port}/").encode(), "application/rss+xml; charset=utf-8")


def log(handler, query):
    handler.reply(json.dumps(handler.server.seen()).encode(), "application/json")


def login(handler, query):
    handler.page(pages.simple("Login", "<p>Welcome back.</p>"), headers=[("Set-Cookie", "club=member; Path=/; Max-Age=86400; HttpOnly")])


def club(handler, query):
    handler.page(pages.club("club=member" in handler.headers.get("Cookie", "")))


def constant(body, content_type, headers=()):
    return lambda handler, query: handler.reply(body, content_type, 200, headers)


def html(text, **options):
    return lambda handler, query: handler.page(text, **options)


ROUTES = {
    "/": html(pages.index()),
    "/tour": html(pages.tour()),
    "/feed.xml": feed,
    "/redirected": html(pages.simple("Redirected", "<p>The end of the chain.</p>")),
    "/redirect-loop": lambda handler, query: handler.redirect("/redirect-loop"),
    "/redirect-file": lambda handler, query: handler.redirect("file:///etc/passwd"),
    "/error": html(pages.simple("Error", "<p>Broken inside.</p>"), status=500),
    "/empty": html(""),
    "/slow": slow,
    "/endless": endless,
    "/hang": hang,
    "/large": large,
    "/cut": cut,
    "/hostile": html(pages.hostile()),
    "/js-title": html(pages.js_title()),
    **{f"/check/{name}": html(pages.robot_check(name)) for name in pages.ROBOT_CHECKS},
    "/check/widget": html(pages.robot_widget()),
    "/check/contact": html(pages.robot_contact()),
    "/check/title": html(pages.robot_title()),
    "/wall/article": lambda handler, query: handler.redirect("/users/sign_in?return_to=/wall/article"),
    "/wall/moved": lambda handler, query: handler.redirect("/wall/header?moved=1"),
    "/wall/header": html(pages.page_with_sign_in_form()),
    "/users/sign_in": html(pages.sign_in()),
    "/js-forever": html(pages.js_forever()),
    "/busy": html(pages.busy()),
    "/dialogs": html(pages.dialogs()),
    "/slow-image": html(pages.slow_image()),
    "/base": html(pages.base()),
    "/refresh": html(pages.refresh()),
    "/icon": html(pages.icon()),
    "/latin1": html(pages.latin1(), charset="iso-8859-1"),
    "/shift-jis": html(pages.shift_jis(), charset="Shift_JIS"),
    "/windows-1252": html(pages.windows_1252(), charset=None),
    "/bad-utf8": html(pages.bad_utf8()),
    "/style.css": constant(files.STYLE, "text/css"),
    "/script.js": constant(files.SCRIPT, "text/javascript"),
    "/logo.png": constant(files.png(120, 60, (40, 90, 160)), "image/png"),
    "/photo.png": constant(files.png(320, 200, (180, 120, 60)), "image/png"),
    "/favicon.ico": constant(files.ico(), "image/x-icon"),
    "/icons/site.png": constant(files.png(32, 32, (200, 40, 40)), "image/png"),
    "/document.pdf": constant(files.pdf("A document of the test site"), "application/pdf"),
    "/download": constant(
        files.DOWNLOAD,
        "application/octet-stream",
        [("Content-Disposition", 'attachment; filename="download.bin"')],
    ),
    "/image.bin": constant(bytes(3 << 20), "application/octet-stream"),
    "/notes.txt": constant(b"Plain text, and http://example.test/ in it.\n", "text/plain"),
    "/log": log,
    "/login": login,
    "/club": club,
}

FAMILIES = {
    "page": lambda handler, number: handler.page(pages.numbered(number)),
    "links": lambda handler, number: handler.page(pages.many_links(min(number, 100_000))),
    "redirect": redirect_chain,
}


class Site(ThreadingHTTPServer):
    """The server and its memory of requests, newest last, the last 10,000 of them."""

    daemon_threads = True
    request_queue_size = 128

    def __init__(self, address):
        super().__init__(address, Handler)
        self.stopping = threading.Event()
        self.lock = threading.Lock()
        self.requests = []

    def note(self, method, path, agent):
        entry = {"time": time.time(), "method": method, "path": path, "agent": agent}
        with self.lock:
            self.requests.append(entry)
            del self.requests[:-10_000]

    def seen(self):
        with self.lock:
            return list(self.requests)

    def handle_error(self, request, client_address):
        pass  # readers that go away are what the endless page is for


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--port", type=int, default=8123, help="0 picks a free one")
    parser.add_argument("--bind", default="127.0.0.1")
    options = parser.parse_args()
    site = Site((options.bind, options.port))
    print(f"listening on http://{options.bind}:{site.server_port}/", flush=True)
    try:
        site.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        site.stopping.set()


if __name__ == "__main__":
    main()
