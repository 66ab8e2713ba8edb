"""Pages with frames: of the same site, of another site, within each other, made by scripts, without an end."""

import http.server
import sys

PORT = int(sys.argv[1])
OTHER = f"http://localhost:{PORT}"


def page(body, head=""):
    return f"<!doctype html><title>frames</title>{head}<p>OUTSIDE</p>{body}<a href=/last>last</a>"


PAGES = {
    "/": page(
        f"<iframe src='{OTHER}/dir/other' width=300></iframe><iframe src=/dir/same></iframe>"
        "<iframe srcdoc='<p>IN SRCDOC</p><a href=by-srcdoc>x</a>'></iframe>"
        f"<!-- <iframe src='{OTHER}/dir/other' width=300></iframe> -->"
    ),
    "/dir/other": page(
        f"<script>document.write('<p>OF THE ' + 'OTHER SITE</p>')</script><a href=by-other>x</a>"
        f"<iframe src='http://127.0.0.1:{PORT}/dir/inner'></iframe>"
    ),
    "/dir/same": page("<p>OF THE SAME SITE &quot;quoted&quot; &lt;b&gt;</p><a href=by-same>x</a>", "<base href=/else/>"),
    "/dir/inner": page("<p>TWO DEEP</p><a href=by-inner>x</a>"),
    "/many": page("".join(f"<iframe src='/small?{n}'></iframe>" for n in range(60))),
    "/itself": page("<script>if (location.search.length < 9) document.write('<iframe src=/itself?' + location.search.slice(1)"
                    " + 'x></iframe>'); else document.write('<p>DEEPEST</p>')</script>"),
    "/shadow": page("<x-y><template shadowrootmode=closed><iframe src=/dir/same></iframe></template></x-y>"),
    "/busy": page(f"<iframe src='{OTHER}/spins'></iframe><iframe src=/dir/same></iframe>"),
    "/spins": page("<script>setTimeout(() => { for (;;); }, 1)</script>"),
}


visits = 0


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path, _, _ = self.path.partition("?")
        global visits
        visits += path == "/visits"
        if path == "/visits":
            text = f"<!doctype html><title>visit {visits}</title><p>OUTSIDE"
        else:
            text = page(f"<p>SMALL {self.path}</p>") if path == "/small" else PAGES.get(path)
        if text is None:
            self.send_error(404)
            return
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
