"""Servers with TLS and self-signed certificates, written to /tmp/certificates/PORT.crt.

PORT: CA:TRUE, as "openssl req -x509" makes it; PORT+50: CA:FALSE; PORT+51: CA:FALSE, 2 days left;
PORT+52: expired yesterday.
"""
import http.server
import os
import ssl
import subprocess
import sys
import tempfile
import threading
import time

DIRECTORY = "/tmp/certificates"
CONFIGURATION = """
[req]
distinguished_name = name
[name]
[ca]
default_ca = own
[own]
database = {0}/index
new_certs_dir = {0}
rand_serial = yes
default_md = sha256
policy = any
[any]
commonName = supplied
[server]
subjectAltName = DNS:localhost, IP:127.0.0.1
basicConstraints = critical, CA:{1}
"""


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"<!doctype html><title>tls</title>"
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True)


def make(port, days, authority):
    """Makes key and certificate; `openssl ca` sets dates in the past with any version of OpenSSL."""
    work = tempfile.mkdtemp()
    configuration, key, request = work + "/cnf", work + "/key", work + "/csr"
    certificate = "%s/%d.crt" % (DIRECTORY, port)
    with open(configuration, "w") as file:
        file.write(CONFIGURATION.format(work, "TRUE" if authority else "FALSE"))
    open(work + "/index", "w").close()
    date = lambda at: time.strftime("%Y%m%d%H%M%SZ", time.gmtime(at))
    now = time.time()
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", request,
            "-subj", "/CN=localhost %d" % port, "-config", configuration)
    openssl("ca", "-selfsign", "-batch", "-notext", "-config", configuration, "-extensions", "server",
            "-keyfile", key, "-in", request, "-out", certificate,
            "-startdate", date(now - 10 * 86400), "-enddate", date(now + days * 86400))
    return certificate, key


def serve(port, days, authority):
    certificate, key = make(port, days, authority)
    server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    server.socket = context.wrap_socket(server.socket, server_side=True)
    threading.Thread(target=server.serve_forever).start()


os.makedirs(DIRECTORY, exist_ok=True)
first = int(sys.argv[1])
# The first port last: then all of them listen.
for offset, days, authority in [(52, -1, False), (51, 2.1, False), (50, 300, False), (0, 300, True)]:
    serve(first + offset, days, authority)
