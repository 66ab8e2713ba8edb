"""Prints the pages that the server at a socket has for a word: query.py SOCKET PASSWORD WORD"""

import socket
import sys

path, password, word = sys.argv[1:]
stream = socket.socket(socket.AF_UNIX)
stream.settimeout(30)
stream.connect(path)
lines = stream.makefile("rw", encoding="utf-8", newline="\n")
lines.readline()
for command in (f"START search {password}", f'QUERY archive pages "{word}"'):
    lines.write(f"{command}\n")
    lines.flush()
    reply = lines.readline()
    assert reply.startswith(("STARTED", "PENDING")), reply
print(*sorted(lines.readline().split()[3:], key=lambda page: int(page[1:])))
