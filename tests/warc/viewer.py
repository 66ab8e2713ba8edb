#!/usr/bin/env python3
"""Records pages with the hooks, and opens them in replayweb.page, in chromium, with their servers stopped.

usage: viewer.py DIRECTORY ARCHIVIST RECORDING    DIRECTORY has ui.js and sw.js of replayweb.page
       RECORDING is a file of the example recording of archivist-warc. Prints what each page showed; exits with 1 if one
       did not show its text.
"""

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
# Seconds for a page. Nothing waits for their end if the page is shown.
LIMIT = 120
# Server, path, and words that the page shows when its scripts and frames have run. The viewer loses what follows
# document.write() in a frame, so that the frame within the frame of the other site is not among them.
PAGES = [
    ("site/kinds.py --port PORT", "/all", ["Kinds of requests", "done"]),
    ("web/54-frames/server.py PORT", "/", ["OUTSIDE", "OF THE SAME SITE", "OF THE OTHER SITE", "IN SRCDOC"]),
]

OPENED = r"""<!doctype html><meta charset=utf-8><script src="/ui.js"></script>
<replay-web-page replayBase="/replay/" embed="replayonly" source="%(source)s" url="%(url)s"></replay-web-page>
<script>
const wanted = %(text)s;
// The titles and texts of all documents below shadow roots and frames, but not of this one.
const texts = (root) => [...root.querySelectorAll("*")].flatMap((part) => {
  const frame = part.localName === "iframe" && part.contentDocument;
  const inner = frame || part.shadowRoot;
  return [...(frame ? [frame.title, frame.body?.innerText ?? ""] : []), ...(inner ? texts(inner) : [])];
});
let last = "";
const report = (shown) => fetch("/shown", { method: "POST", body: JSON.stringify({ shown, text: last }) });
const look = async () => {
  last = texts(document).join("\n");
  if (wanted.every((word) => last.includes(word))) { clearInterval(looking); report(true); }
};
const looking = setInterval(look, 100);
setTimeout(() => { clearInterval(looking); report(false); }, %(limit)d);
</script>"""

REPLAY = b'<!doctype html><meta charset=utf-8><script src="/ui.js"></script><replay-app-main></replay-app-main>'


class Handler(BaseHTTPRequestHandler):
    """The viewer, one page that holds it, and the recording with ranges."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        path = urlsplit(self.path).path
        page = self.server.page
        if path == "/":
            values = {"source": "/page.wacz", "url": page["url"], "text": json.dumps(page["text"]), "limit": LIMIT * 900}
            return self.reply("text/html", (OPENED % values).encode())
        if path == "/replay/":
            return self.reply("text/html", REPLAY)
        if path == "/replay/sw.js":
            return self.reply("text/javascript", b'importScripts("/sw.js");')
        if path in ("/ui.js", "/sw.js"):
            with open(os.path.join(self.server.directory, path[1:]), "rb") as file:
                return self.reply("text/javascript", file.read())
        if path == "/page.wacz":
            return self.ranged(page["file"])
        return self.reply("text/plain", b"", 404)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        self.reply("text/plain", b"")
        self.server.answers.put(json.loads(body))

    def ranged(self, path):
        with open(path, "rb") as file:
            content = file.read()
        wanted = self.headers.get("Range", "")
        if not wanted.startswith("bytes="):
            return self.reply("application/wacz", content, 200, [("Accept-Ranges", "bytes")])
        first, _, last = wanted[6:].partition("-")
        start = int(first) if first else max(0, len(content) - int(last))
        end = min(int(last) + 1 if first and last else len(content), len(content))
        place = ("Content-Range", f"bytes {start}-{end - 1}/{len(content)}")
        return self.reply("application/wacz", content[start:end], 206, [place, ("Accept-Ranges", "bytes")])

    def reply(self, kind, body, status=200, headers=()):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)


def as_ordinary_user(words):
    """Chromium does not run as root."""
    if os.geteuid() != 0:
        return words
    return ["setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "--no-new-privs", "--", *words]


def recorded(archivist, server, path, directory):
    """Records a page with the hooks that record every page, and stops its server. Returns its URL and the file."""
    port = free_port()
    program, *words = server.replace("PORT", str(port)).split()
    site = subprocess.Popen([sys.executable, os.path.join(TESTS, program), *words], stdout=subprocess.DEVNULL)
    tab = None
    try:
        wait_for(port)
        url = f"http://127.0.0.1:{port}{path}"
        environment = {**os.environ, "SNAP_DIR": directory, "CRAWL_DIR": directory, "HOME": directory, "TMPDIR": directory}
        environment.update(CHROMIUM_ISOLATION="snapshot", CHROMIUM_TIMEOUT="120", WACZ_TIMEOUT="60")

        def start(hook, plugin):
            words = as_ordinary_user([archivist, "hook", hook, f"--url={url}"])
            return subprocess.Popen(words, cwd=os.path.join(directory, plugin), env=environment, stdout=subprocess.PIPE, text=True)

        os.chmod(directory, 0o777)
        for plugin in ("chromium", "wacz"):
            os.mkdir(os.path.join(directory, plugin))
            os.chmod(os.path.join(directory, plugin), 0o777)
        tab = start("chromium_tab", "chromium")
        ready = tab.stdout.readline()
        hook = start("wacz", "wacz")
        said, _ = hook.communicate(timeout=LIMIT)
        assert hook.returncode == 0, (ready, said)
    finally:
        if tab:
            tab.send_signal(signal.SIGTERM)
            tab.communicate(timeout=LIMIT)
        site.kill()
        site.wait()
    return url, os.path.join(directory, "wacz", "page.wacz")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


def wait_for(port):
    until = time.monotonic() + LIMIT
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 5).close()
        except OSError:
            assert time.monotonic() < until, f"nothing listens on {port}"
            time.sleep(0.05)


def shown(server, page, directory):
    """What the viewer shows of a page."""
    server.page = page
    profile = os.path.join(directory, "profile")
    words = ["chromium", "--headless=new", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    words += [f"--user-data-dir={profile}", f"http://127.0.0.1:{server.server_port}/"]
    with open(os.path.join(directory, "log"), "ab") as log:
        browser = subprocess.Popen(as_ordinary_user(words), env={**os.environ, "HOME": directory}, stdout=log, stderr=log)
    try:
        return server.answers.get(timeout=LIMIT)
    except queue.Empty:
        return {"shown": False, "text": "the viewer did not answer"}
    finally:
        browser.terminate()
        try:
            browser.wait(30)
        except subprocess.TimeoutExpired:
            browser.kill()
            browser.wait()


def main():
    viewer, archivist, recording = sys.argv[1:]
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.directory = viewer
    server.answers = queue.Queue()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    pages = [("example", {"url": "https://page.test/", "file": recording, "text": ["A page"]})]
    failures = 0
    with tempfile.TemporaryDirectory() as work:
        os.chmod(work, 0o755)
        for number, (site, path, text) in enumerate(PAGES):
            directory = os.path.join(work, str(number))
            os.mkdir(directory)
            url, file = recorded(archivist, site, path, directory)
            pages.append((site.split()[0], {"url": url, "file": file, "text": text}))
        for number, (name, page) in enumerate(pages):
            directory = os.path.join(work, f"viewer-{number}")
            os.mkdir(directory)
            os.chmod(directory, 0o777)
            seen = shown(server, page, directory)
            print(f"{name} {page['url']}: {'shown' if seen['shown'] else 'NOT shown: ' + repr(seen['text'][:2000])}", flush=True)
            failures += not seen["shown"]
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
