"""A site of traps: a calendar without an end, a path that loops, a session in each address."""
import http.server
import itertools
import re
import sys

SESSIONS = itertools.count()


def text(path):
    month = re.match(r"/cal\?m=(-?\d+)(&d=\d+)?$", path)
    if path == "/":
        real = "".join("<a href=/real/%d>r</a>" % number for number in range(20))
        return "<a href=/cal?m=1>calendar</a> <a href=loop/>loop</a> <a href=/sess>shop</a>" + real
    if month and not month[2]:
        number = int(month[1])
        days = "".join("<a href='/cal?m=%d&d=%d'>day</a>" % (number, day) for day in range(1, 29))
        return "<a href=/cal?m=%d>next</a> <a href=/cal?m=%d>previous</a>" % (number + 1, number - 1) + days
    if month:
        return "day"
    if path.startswith("/loop/"):
        return "<a href=loop/>again</a> <a href=x/>x</a>"
    if path.startswith("/sess"):
        return "<a href='/sess?sid=%d'>same page</a>" % next(SESSIONS)
    if re.match(r"/real/\d+$", path):
        return "content"
    return None


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        found = text(self.path)
        page = "<!doctype html><html lang=en><head><title>%s</title></head><body><h1>x</h1>%s</body></html>"
        body = (page % (self.path, found or "")).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    request_queue_size = 64


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
