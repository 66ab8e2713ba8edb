"""How late status checks begin. Standard input has the document of `archivist watch list --json` and then those of
`archivist watch history --json`, one after another.

lateness.py EVERY [OFFSET]: seconds from one run to the next. When a watch's turn is within that, its timer's next time says; a timer
that has just elapsed has none, and OFFSET counts, or else its checks do not. Prints checks, the 95th percentile and the longest
lateness in ms.
"""
import datetime
import json
import sys


def seconds(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def documents(text):
    decoder, at = json.JSONDecoder(), 0
    while text[at:].strip():
        at += len(text[at:]) - len(text[at:].lstrip())
        document, at = decoder.raw_decode(text, at)
        yield document


every = float(sys.argv[1])
watches, *histories = documents(sys.stdin.read())
default = float(sys.argv[2]) if len(sys.argv) > 2 else None
turn = {watch["name"]: seconds(watch["next"]["status"]) % every for watch in watches if "status" in watch["next"]}
late = []
for check in (check for history in histories for check in history):
    offset = turn.get(check["watch"], default)
    if check["started_at"] and offset is not None:
        late.append((seconds(check["started_at"]) - offset + every / 20) % every - every / 20)
late.sort()
print(len(late), round(late[int(len(late) * 0.95)] * 1000), round(late[-1] * 1000))
