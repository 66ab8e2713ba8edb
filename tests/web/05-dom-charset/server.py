"""Pages in encodings other than UTF-8, which a browser saves as UTF-8. server.py PORT"""
import http.server
import sys

WORDS = {
    "shift_jis": "こんにちは、世界",
    "euc-kr": "안녕하세요 세계",
    "windows-1251": "Здравствуй, мир",
    "gb18030": "你好，世界",
}
LINK = "<a href='/search?q=%s'>x</a>"
PAGES = {}
for label, words in WORDS.items():
    head = f"<title>{words}</title></head><body><p id=t>{words}</p>{LINK % words[:2]}</body></html>"
    declared = f"<meta charset='{label}'>"
    pragma = f"<meta http-equiv=Content-Type content='text/html; charset={label}'>"
    commented = f"<!-- <meta charset=utf-8> --><script>'<meta charset=utf-8>'</script>{declared}"
    PAGES["/" + label] = ("text/html", declared + head, label)
    PAGES["/pragma/" + label] = ("text/html", pragma + head, label)
    PAGES["/comment/" + label] = ("text/html", commented + head, label)
    PAGES["/header/" + label] = ("text/html; charset=" + label, head, label)
    PAGES["/xhtml/" + label] = (
        "application/xhtml+xml",
        f"<?xml version='1.0' encoding='{label}'?><html xmlns='http://www.w3.org/1999/xhtml'><head>"
        + head.replace(" id=t", " id='t'"),
        label,
    )


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, text, label = PAGES.get(self.path, ("text/html", "not found", "ascii"))
        if kind.startswith("text/html"):
            text = "<!doctype html><html><head>" + text
        body = text.encode(label)
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
