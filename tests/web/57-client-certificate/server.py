"""A server that demands a client certificate over TLS, and speaks only HTTP/2 without TLS."""

import contextlib
import http.server
import pathlib
import socket
import ssl
import sys

OWN = pathlib.Path(__file__).parent
# The settings of the connection, and its end with PROTOCOL_ERROR.
HTTP2 = b"\0\0\x06\x04\0\0\0\0\0" + b"\0\3\0\0\0\x64" + b"\0\0\x08\x07\0\0\0\0\0" + b"\0\0\0\0\0\0\0\1"
TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
TLS.load_cert_chain(OWN / "server.pem")
TLS.load_verify_locations(OWN / "client.pem")
TLS.verify_mode = ssl.CERT_REQUIRED


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = dict(self.connection.getpeercert()["subject"][0])["commonName"]
        page = f"<!doctype html><title>club</title><link rel=icon href=icon.svg><p>shown to {name}"
        icon = '<svg xmlns="http://www.w3.org/2000/svg" width="16" height="16"><path d="M0 0h16v16z"/></svg>'
        if self.path == "/away":
            self.send_response(302)
            self.send_header("Location", f"https://127.0.0.1:{sys.argv[1]}/")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        if self.path == "/others":
            page += f"<p id=out><img src=https://127.0.0.1:{sys.argv[1]}/icon.svg onload='out.append(\"it came\")'>"
        is_icon = self.path == "/icon.svg"
        body = (icon if is_icon else page).encode()
        self.send_response(200)
        self.send_header("Content-Type", "image/svg+xml" if is_icon else "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


class Server(http.server.ThreadingHTTPServer):
    def finish_request(self, request, address):
        first = request.recv(1, socket.MSG_PEEK)
        if first == b"\x16":
            with request.dup() as plain:
                try:
                    with TLS.wrap_socket(request, server_side=True) as secure:
                        Handler(secure, address, self)
                except OSError:
                    # Unread data would reset the connection, and the client might miss the alert.
                    with contextlib.suppress(OSError):
                        plain.shutdown(socket.SHUT_WR)
                        while plain.recv(65536):
                            pass
        elif first:
            request.recv(65536)
            request.sendall(HTTP2)


Server(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
