#!/usr/bin/python3
"""A name server for tests: every name has the same address, and no other record; those that begin with "missing" do not exist.

usage: resolver.py ADDRESS [ANSWER]     listens on its UDP port 53; says so to the service manager
"""

import os
import socket
import sys

ANSWER = socket.inet_aton(sys.argv[2] if len(sys.argv) > 2 else "192.0.2.77")
A = 1


def reply(query: bytes) -> bytes:
    """The query (RFC 1035, section 4) as an answer; its one question is what follows the header of 12 bytes."""
    end = query.index(0, 12) + 5
    question = query[12:end]
    wants_address = int.from_bytes(question[-4:-2]) == A
    exists = not question[1:].startswith(b"missing")
    wants_address = wants_address and exists
    header = query[:2] + (b"\x81\x80" if exists else b"\x81\x83") + b"\x00\x01" + bytes([0, wants_address]) + bytes(4)
    record = b"\xc0\x0c\x00\x01\x00\x01" + (60).to_bytes(4) + b"\x00\x04" + ANSWER
    return header + question + (record if wants_address else b"")


def ready() -> None:
    """Tells systemd (sd_notify(3))."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.sendto(b"READY=1", os.environ["NOTIFY_SOCKET"])


def main() -> None:
    server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    server.bind((sys.argv[1], 53))
    ready()
    while True:
        query, client = server.recvfrom(4096)
        server.sendto(reply(query), client)


main()
