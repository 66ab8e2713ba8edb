"""Pages whose encoding browsers find in various places, or guess. server.py PORT"""
import http.server
import sys

TITLE = "国家图书馆 公告"
TEXT = "<h1>国家图书馆今天发布公告，欢迎各位读者前来参观，开放时间为上午九点。</h1>"
HEAD = "<!doctype html><html><head>"
META = "<meta charset=gb2312>"
REST = f"<title>{TITLE}</title></head><body><h1>x</h1>"


def page(before, encoding="gb18030", kind="text/html", rest=REST):
    return kind, (before + rest).encode(encoding)


PAGES = {
    "/comment": page(HEAD + "<!-- keep the charset line first! -->" + META),
    "/commented": page(HEAD + "<!-- <meta charset=utf-8> -->" + META),
    "/script": page(HEAD + "<script src=/a.js charset=utf-8></script>" + META),
    "/script-text": page(HEAD + "<script>let a = '<meta charset=utf-8>'</script>" + META),
    "/description": page(HEAD + "<meta name=description content='charset=utf-8'>" + META),
    "/pragma": page(HEAD + "<meta content='text/html; charset=\"gb2312\"' http-equiv=content-type>"),
    "/late": page(HEAD + f"<style>{'a{}' * 1000}</style>" + META),
    "/header": page(HEAD + "<meta charset=utf-8>", kind="text/html; charset=GBK"),
    "/bom": page("\ufeff" + HEAD + META, "utf-8", "text/html; charset=gb2312"),
    "/none": page(HEAD, rest=REST + TEXT),
    "/xml": page(
        "<?xml version='1.0' encoding='gb2312'?><html xmlns='http://www.w3.org/1999/xhtml'><head>",
        kind="application/xhtml+xml",
        rest=f"<title>{TITLE}</title></head><body/></html>",
    ),
    "/utf16": page(HEAD, "utf-16-le"),
    "/utf16be": page(HEAD, "utf-16-be"),
    "/says-utf16": page(HEAD + "<meta charset=utf-16>", "utf-8"),
    "/unlabelled-utf8": page(HEAD, "utf-8"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, body = PAGES.get(self.path, ("text/html", b"<title>not found</title>"))
        self.send_response(200 if self.path in PAGES else 404)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *arguments):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
