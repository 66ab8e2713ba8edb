"""Answers without a page, or with a part of one."""

import http.server
import sys
import time

HTML = {"Content-Type": "text/html"}
PART = b"<title>part</title><p>shown</p"
GONE = b"<!doctype html><title>gone</title><img src=/there.png><img src=/nowhere.png>shown"
ANSWERS = {
    "/204": (204, {}, b""),
    "/205": (205, {}, b""),
    "/304": (304, {}, b""),
    "/empty": (200, HTML | {"Content-Length": "0"}, b""),
    "/empty-chunked": (200, HTML | {"Transfer-Encoding": "chunked"}, b"0\r\n\r\n"),
    "/404": (404, {"Content-Length": "0"}, b""),
    "/503": (503, HTML | {"Content-Length": "0"}, b""),
    "/206": (206, HTML | {"Content-Range": "bytes 0-29/100", "Content-Length": "30"}, PART),
    "/300": (300, HTML | {"Content-Length": "30"}, PART),
    "/301": (301, HTML | {"Content-Length": "30"}, PART),
    "/short": (200, HTML | {"Content-Length": "5000"}, PART),
    "/cut-chunk": (200, HTML | {"Transfer-Encoding": "chunked"}, b"40\r\n" + PART),
    "/false-gzip": (200, HTML | {"Content-Encoding": "gzip", "Content-Length": "30"}, PART),
    "/error-page": (404, HTML | {"Content-Length": "30"}, PART),
    "/403": (403, HTML | {"Content-Length": "30"}, PART),
    "/500": (500, HTML | {"Transfer-Encoding": "chunked"}, b"1e\r\n" + PART + b"\r\n0\r\n\r\n"),
    "/gone": (410, HTML | {"Content-Length": str(len(GONE))}, GONE),
    "/there.png": (200, {"Content-Type": "image/png", "Content-Length": "4"}, b"\x89PNG"),
}


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/endless":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Connection", "close")
            self.end_headers()
            try:
                while True:
                    self.wfile.write(b"<p>more</p>\n")
                    self.wfile.flush()
                    time.sleep(0.1)
            except OSError:
                return
        status, headers, body = ANSWERS.get(self.path, (404, {"Content-Length": "0"}, b""))
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, *_):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
