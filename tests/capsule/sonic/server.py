#!/usr/bin/python3
"""A stand-in for sonic: its channel protocol, as far as hooks and tests use it, with one file as index."""

import pathlib
import re
import signal
import socketserver
import sys

config = pathlib.Path(sys.argv[sys.argv.index("-c") + 1])
text = config.read_text()
host, port = re.search(r'^inet = "(.*):(\d+)"$', text, re.MULTILINE).groups()
password = re.search(r'^auth_password = "(.*)"$', text, re.MULTILINE)[1]
index = pathlib.Path(re.search(r'^path = "(.*/kv/)"$', text, re.MULTILINE)[1]) / "pages"
with open(config.parent / "starts", "a", encoding="utf-8") as starts:
    print("started", file=starts)


def answer(words):
    """The lines that follow a command."""
    match words:
        case ["START", _, given]:
            return ["STARTED"] if given == password else ["ENDED authentication_failed"]
        case ["PUSH", _, _, page, content]:
            with index.open("a", encoding="utf-8") as pages:
                print(page, content, file=pages)
            return ["OK"]
        case ["QUERY", _, _, content]:
            lines = index.read_text().splitlines() if index.exists() else []
            found = [line.split()[0] for line in lines if content in line.split()[1:]]
            return ["PENDING x", " ".join(["EVENT QUERY x", *found])]
        case _:
            return ["ENDED quit"]


class Channel(socketserver.StreamRequestHandler):
    def handle(self):
        self.wfile.write(b"CONNECTED <stand-in>\r\n")
        for line in self.rfile:
            words = re.findall(r'"([^"]*)"|(\S+)', line.decode())
            for reply in answer([quoted or word for quoted, word in words]):
                self.wfile.write(f"{reply}\r\n".encode())


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True


signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
Server((host, int(port)), Channel).serve_forever()
