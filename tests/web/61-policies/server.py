"""Pages whose server or author says what may load, run or be framed, and where links lead."""

import base64
import hashlib
import http.server
import struct
import sys
import zlib

PORT = int(sys.argv[1])


def red_png():
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    rows = (b"\0" + b"\xff\0\0" * 200) * 100
    header = struct.pack(">IIBBBBB", 200, 100, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


# A style sheet with a link, which a copy must change.
STYLE = b".box { width: 200px; height: 100px; background: url(/red.png) }"
DIGEST = "sha256-" + base64.b64encode(hashlib.sha256(STYLE).digest()).decode()


def page(body, head="", **headers):
    names = {"Content-Type": "text/html; charset=utf-8"}
    names.update({name.replace("_", "-"): value for name, value in headers.items()})
    return names, f"<!doctype html><title>policies</title>{head}<body><p>SHOWN{body}".encode()


FAR = "<div style='height:5000px'>a</div>"
LAZY = FAR + "<img loading=lazy src=/red.png width=200 height=100>"
PAGES = {
    "/no-scripts": page(LAZY, Content_Security_Policy="default-src 'none'; img-src 'self'; style-src 'unsafe-inline'"),
    "/sandbox": page(LAZY + "<script>document.body.append('SCRIPT RAN')</script>", Content_Security_Policy="sandbox"),
    "/trusted-types": page(
        LAZY + "<script>document.body.append(' SCRIPT RAN')</script>",
        Content_Security_Policy="require-trusted-types-for 'script'; trusted-types 'none'",
    ),
    "/isolated": page(
        LAZY,
        Cross_Origin_Opener_Policy="same-origin",
        Cross_Origin_Embedder_Policy="require-corp",
        Cross_Origin_Resource_Policy="same-origin",
    ),
    # A copy on disk is another origin, and its style sheets have other bytes.
    "/own-policy": page(
        "<div class=box></div>",
        "<meta http-equiv=content-security-policy content=\"default-src http://127.0.0.1:%d\"><link rel=stylesheet href=/style.css>" % PORT,
    ),
    "/integrity": page(
        "<div class=box></div>",
        f"<link rel=stylesheet href=/style.css integrity={DIGEST} crossorigin>",
    ),
    "/frameset": (
        {"Content-Type": "text/html"},
        b"<html><head><title>policies</title></head><frameset cols='20%,*'><frame src=/menu><frame src=/main>"
        b"<noframes>NO FRAMES</noframes></frameset></html>",
    ),
    "/menu": page(" MENU <a href=/from-menu target=main>go</a>"),
    "/main": page(" MAIN <a href=/from-main>go</a>"),
    "/denied": page("<iframe src=/deny></iframe>"),
    "/deny": page(" DENIED", X_Frame_Options="DENY"),
    "/hotlink": page("<img src=/referred.png>"),
    "/members": page("<img src=/member.png>", Set_Cookie="member=1; Path=/; SameSite=Lax"),
    "/no-script-refresh": page("", "<noscript><meta http-equiv=refresh content='0; url=/enable'></noscript>"),
    "/enable": page(" ENABLE JAVASCRIPT"),
    "/a/b/base": page("<img src=red.png><a href=next>next</a><a href=?q=1>query</a>", "<base href=/ target=_blank>"),
    "/modules": page(
        "<p id=p></p>",
        "<script type=importmap>{\"imports\": {\"greet\": \"/greet.js\"}}</script>"
        "<script type=module>import { greet } from 'greet'; const { late } = await import('/late.js');"
        "p.textContent = greet + late</script>",
    ),
    "/greet.js": ({"Content-Type": "text/javascript"}, b"export const greet = 'IMPORTED '"),
    "/late.js": ({"Content-Type": "text/javascript"}, b"export const late = 'LATE CHUNK'"),
    "/style.css": ({"Content-Type": "text/css", "Access-Control-Allow-Origin": "*"}, STYLE),
    "/red.png": ({"Content-Type": "image/png", "Access-Control-Allow-Origin": "*"}, red_png()),
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/login":
            self.answer(401, {"Content-Type": "text/html", "WWW-Authenticate": 'Basic realm="x"'}, b"<title>401</title>LOG IN FIRST")
        elif path == "/referred.png" and "/hotlink" not in self.headers.get("Referer", "") \
                and not self.headers.get("Referer", "").startswith(f"http://127.0.0.1:{PORT}/"):
            self.answer(403, {"Content-Type": "text/html"}, b"no hotlinks")
        elif path == "/member.png" and "member=1" not in self.headers.get("Cookie", ""):
            self.answer(403, {"Content-Type": "text/html"}, b"members only")
        elif path in ("/referred.png", "/member.png"):
            self.answer(200, *PAGES["/red.png"])
        elif path in PAGES:
            self.answer(200, *PAGES[path])
        else:
            self.send_error(404)

    def answer(self, status, headers, body):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
