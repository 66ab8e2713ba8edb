"""A site in moods: what the file MOOD says (good, bad, slow) is how it answers. With a certificate, over TLS.

site.py PORT MOOD [CERTIFICATE]
"""
import ssl
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


class Site(BaseHTTPRequestHandler):
    def do_GET(self):
        with open(sys.argv[2]) as file:
            mood = file.read().strip()
        if mood == "slow":
            time.sleep(60)
        body = b"<title>a site</title>"
        self.send_response(500 if mood == "bad" else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self):
        """A webhook: stores the body of the request in the directory of the mood."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with open(sys.argv[2] + ".posted", "ab") as file:
            file.write(body + b"\n")
        self.send_response(204)
        self.end_headers()

    def log_message(self, *arguments):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Site)
server.daemon_threads = True
if len(sys.argv) > 3:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(sys.argv[3])
    server.socket = context.wrap_socket(server.socket, server_side=True)
server.serve_forever()
