"""Pages that are very large, very long or very deep."""

import http.server
import sys

HEAD = "<!doctype html><meta charset=utf-8><title>huge</title><p>SHOWN"
ROWS = 5_000
PAGES = {
    # 6 MB of text in 100 paragraphs of one line each.
    "/megabytes": HEAD + "".join(f"<p style='white-space:nowrap;overflow:hidden'>{'word ' * 12_000}</p>" for _ in range(100)) + "<p>END OF PAGE",
    "/rows": HEAD + "<table>" + "".join(f"<tr><td>{n}<td>row<td>{n * n}<td><a href=/row/{n % 50}>link</a>" for n in range(ROWS))
    + "</table><p>END OF PAGE",
    "/nested": HEAD + "<div>" * 3_000 + "INNERMOST <a href=/inner>link</a>" + "</div>" * 3_000 + "<p>END OF PAGE",
    "/built": HEAD + "<script>let at = document.body; for (let n = 0; n < 600; n++) at = at.appendChild(document.createElement('div'));"
    "at.innerHTML = 'INNERMOST <a href=/inner>link</a>'</script>",
    "/one-line": HEAD + "<svg width=100 height=100><path d='M0 0" + "L1 1L0 0" * 100_000 + "'/></svg><p>END OF PAGE",
    "/attributes": HEAD + "<p " + " ".join(f"data-a{n}=x" for n in range(5_000)) + ">END OF PAGE",
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path not in PAGES:
            self.send_error(404)
            return
        body = PAGES[self.path].encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
