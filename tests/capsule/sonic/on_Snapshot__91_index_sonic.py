#!/usr/bin/python3
"""Indexes the last part of the URL, as the hook of abx-plugins indexes the text of a page."""

import os
import socket
import sys

setting = {name: os.environ[f"SEARCH_BACKEND_SONIC_{name}"] for name in ("HOST_NAME", "PORT", "PASSWORD")}
url = next(word for word in sys.argv if word.startswith("--url="))
stream = socket.create_connection((setting["HOST_NAME"], int(setting["PORT"])), 5)
lines = stream.makefile("rw", encoding="utf-8", newline="\n")
page = os.environ["SNAPSHOT_ID"]
with open("answers.txt", "w", encoding="utf-8") as answers:
    for command in ("", f"START ingest {setting['PASSWORD']}", f'PUSH archive pages {page} "{url.rsplit("/", 1)[1]}"'):
        if command:
            lines.write(f"{command}\n")
            lines.flush()
        print(lines.readline().split()[0], file=answers)
