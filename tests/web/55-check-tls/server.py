"""Servers that few clients speak to, with certificates of an authority in /tmp/check-tls.

PORT: HTTP/2 alone; PORT+60: HTTP/2 without TLS; PORT+61: demands a certificate of the client, which is
/tmp/check-tls/client.pem with its key.
"""
import os
import socket
import ssl
import struct
import subprocess
import sys
import threading

DIRECTORY = "/tmp/check-tls"
BODY = b"<!doctype html><title>tls</title>Welcome"


def openssl(*arguments):
    subprocess.run(["openssl", *arguments], check=True, capture_output=True, cwd=DIRECTORY)


def make(name, alternative):
    """Makes NAME.pem, a certificate of the authority with its key."""
    with open("%s/%s.ext" % (DIRECTORY, name), "w") as file:
        file.write("basicConstraints=CA:FALSE\nsubjectAltName=" + alternative)
    openssl("req", "-new", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".csr")
    openssl("x509", "-req", "-in", name + ".csr", "-CA", "authority.crt", "-CAkey", "authority.key", "-CAcreateserial",
            "-days", "90", "-extfile", name + ".ext", "-out", name + ".pem")
    with open("%s/%s.pem" % (DIRECTORY, name), "a") as file, open("%s/%s.key" % (DIRECTORY, name)) as key:
        file.write(key.read())


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def modern(connection):
    """Answers each request of HTTP/2 with status 200 and a page."""
    connection.sendall(frame(4, 0, 0))
    stream = connection.makefile("rb")
    if stream.read(24) != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
        return
    while len(start := stream.read(9)) == 9:
        stream.read(int.from_bytes(start[:3], "big"))
        number = int.from_bytes(start[5:], "big")
        if start[3] == 1:
            headers = b"\x88\x00\x0ccontent-type\x09text/html"
            connection.sendall(frame(1, 4, number, headers) + frame(0, 1, number, BODY))


def old(connection):
    connection.recv(65536)
    head = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\nContent-Length: %d\r\n\r\n"
    connection.sendall((head % len(BODY)).encode() + BODY)


def context(protocol, demands):
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(DIRECTORY + "/server.pem")
    made.set_alpn_protocols([protocol])
    if demands:
        made.verify_mode = ssl.CERT_REQUIRED
        made.load_verify_locations(DIRECTORY + "/authority.crt")
    return made


def answer(connection, speak, secure):
    try:
        if secure:
            connection = secure.wrap_socket(connection, server_side=True)
        speak(connection)
    except OSError:
        pass
    finally:
        connection.close()


def serve(port, speak, secure):
    listener = socket.create_server(("127.0.0.1", port))
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=answer, args=(connection, speak, secure), daemon=True).start()


os.makedirs(DIRECTORY, exist_ok=True)
openssl("req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "90", "-subj", "/CN=check-tls", "-keyout", "authority.key",
        "-out", "authority.crt", "-addext", "basicConstraints=critical,CA:TRUE")
make("server", "DNS:localhost,IP:127.0.0.1")
make("client", "DNS:client")
first = int(sys.argv[1])
servers = [
    (first + 61, old, context("http/1.1", True)),
    (first + 60, modern, None),
    # The first port last: then all of them listen.
    (first, modern, context("h2", False)),
]
for arguments in servers[:-1]:
    threading.Thread(target=serve, args=arguments).start()
serve(*servers[-1])
