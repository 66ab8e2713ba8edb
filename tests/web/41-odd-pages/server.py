"""Pages that do what browsers allow: workers, frames, media, printing, prompts, other kinds of documents."""

import http.server
import sys
import time

PORT = int(sys.argv[1])


def html(body):
    return "text/html", "<!doctype html><title>odd</title><p id=p>SHOWN" + body


def later(script):
    return html(f"<script>setTimeout(() => {{ {script} }}, 500)</script>")


PAGES = {
    "/service-worker": html(
        "<script>navigator.serviceWorker.register('/worker.js');"
        "navigator.serviceWorker.addEventListener('controllerchange', () => location.reload())</script>"
    ),
    "/worker.js": (
        "text/javascript",
        "addEventListener('install', () => skipWaiting());"
        "addEventListener('activate', e => e.waitUntil(clients.claim()));"
        "addEventListener('fetch', e => e.respondWith(fetch(e.request)))",
    ),
    "/other-site": html(f"<iframe src='http://localhost:{PORT}/inner'></iframe>"),
    "/inner": html(" INSIDE"),
    "/media": html("<video autoplay src=/missing.mp4></video><audio autoplay src=/hold></audio>"),
    "/prints": html("<script>print()</script>"),
    "/opens": html("<script>open('/inner'); close()</script>"),
    "/prompts": html("<script>Notification.requestPermission();navigator.geolocation.getCurrentPosition(() => {})</script>"),
    "/writes": later("document.open(); document.write('<title>odd</title><p>SHOWN LATER'); document.close()"),
    "/blob": later("location = URL.createObjectURL(new Blob(['<title>odd</title><p>SHOWN'], {type: 'text/html'}))"),
    "/mail": later("location = 'mailto:a@b.test'"),
    "/data": later("location = 'data:text/html,x'"),
    "/stays": html("<script>onbeforeunload = e => { e.preventDefault(); return 'x' };"
                   "setTimeout(() => { location = '/inner' }, 500)</script>"),
    "/blank": later("location = 'about:blank'"),
    "/framed": html("<iframe sandbox srcdoc='<script>top.location=\"/inner\"</script>'></iframe>"),
    "/animated": html("<script>(function f() { p.title += 'x'; requestAnimationFrame(f) })()</script>"),
    "/webgl": html("<canvas id=c></canvas><script>c.getContext('webgl')</script>"),
    "/xml": ("text/xml", "<?xml version='1.0'?><root><a>SHOWN</a></root>"),
    "/json": ("application/json", '{"a": "SHOWN"}'),
    "/text": ("text/plain", "SHOWN"),
    "/drawing": ("image/svg+xml", "<svg xmlns='http://www.w3.org/2000/svg'><text y='50'>SHOWN</text></svg>"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/hold":
            time.sleep(60)
            return
        if self.path not in PAGES:
            self.send_error(404)
            return
        kind, text = PAGES[self.path]
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
