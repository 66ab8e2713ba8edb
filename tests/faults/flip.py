"""Flips bytes of the database, of its write-ahead log and of the configuration, and looks at what the orchestrator makes of
that. Runs in the capsule: flip.py SEED COUNT"""
import hashlib
import os
import random
import shutil
import sqlite3
import subprocess
import sys
import time

SERVICE = "archivist-orchestrator.service"
DATABASE = "/var/lib/archivist/archivist.sqlite3"
CONFIG = "/etc/archivist/archivist.conf.d/90-test.conf"
KEPT = "/srv/flip"
# What a refusal has to say: what is wrong, and what to do about it.
HINTS = ("restore a backup", "install the newer version", "failed to migrate", "see: archivist doctor")
LOST = "is damaged, and the last records are lost"


def run(*command):
    return subprocess.run(command, capture_output=True, text=True)


def show(name):
    return run("systemctl", "show", "--property=" + name, "--value", SERVICE).stdout.strip()


def stop():
    run("systemctl", "stop", SERVICE)
    run("systemctl", "reset-failed", SERVICE)


def restore(kind):
    for end in ("", "-wal", "-shm"):
        if os.path.exists(DATABASE + end):
            os.remove(DATABASE + end)
        if os.path.exists(KEPT + "/" + kind + end):
            shutil.copy(KEPT + "/" + kind + end, DATABASE + end)


def flip(path, rng):
    with open(path, "r+b") as file:
        content = bytearray(file.read())
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(content))
            content[place] ^= rng.randrange(1, 256)
        file.seek(0)
        file.write(content)


def damage(path):
    """What SQLite finds wrong with the database; empty if nothing."""
    try:
        return "; ".join(row[0] for row in sqlite3.connect(path).execute("PRAGMA integrity_check") if row[0] != "ok")
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return str(error)


def digest(path):
    """What is in the database, by SQLite's own account; None if it finds it damaged."""
    work = KEPT + "/look"
    for end in ("", "-wal", "-shm"):
        if os.path.exists(work + end):
            os.remove(work + end)
        if end != "-shm" and os.path.exists(path + end):
            shutil.copy(path + end, work + end)
    try:
        database = sqlite3.connect(work)
        database.text_factory = bytes
        if database.execute("PRAGMA integrity_check(1)").fetchone()[0] != b"ok":
            return None
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY 1")]
        content = [database.execute("SELECT * FROM " + table.decode()).fetchall() for table in tables]
        return hashlib.sha256(repr(content).encode()).hexdigest()
    except (sqlite3.Error, UnicodeDecodeError):
        return None


def without_the_last(path):
    """The same of the database as it was before its last transaction."""
    with open(path + "-wal", "rb") as file:
        log = file.read()
    size = 24 + int.from_bytes(log[8:12], "big")
    ends = [at + size for at in range(32, len(log) - size + 1, size)
            if log[at + 8:at + 16] == log[16:24] and int.from_bytes(log[at + 4:at + 8], "big")]
    before = KEPT + "/before"
    shutil.copy(path, before)
    with open(before + "-wal", "wb") as file:
        file.write(log[:ends[-2]])
    return digest(before)


def cursor():
    return run("journalctl", "--quiet", "-n", "0", "--show-cursor").stdout.split("cursor: ")[1].strip()


def said(since):
    return run("journalctl", "--quiet", "--no-pager", "--output=cat", "-u", SERVICE, "--after-cursor=" + since).stdout


def start(expect_refusal):
    """Whether it works, and what it said. A damaged page may be met only when all has been read."""
    since = cursor()
    run("systemctl", "start", SERVICE)
    deadline = time.monotonic() + (60 if expect_refusal else 0.3)
    while show("ActiveState") != "failed" and time.monotonic() < deadline:
        time.sleep(0.05)
    works = show("ActiveState") == "active"
    if not works and show("ActiveState") != "failed":
        sys.exit("neither works nor is refused: " + show("ActiveState"))
    if not works and show("ExecMainStatus") != "78":
        sys.exit("status %s: %s" % (show("ExecMainStatus"), said(since)))
    if works and run("archivist", "list", "runs", "--limit", "0").returncode != 0:
        # It met the damage with that question, and systemd hears of its end in a moment.
        deadline = time.monotonic() + 10
        while show("ActiveState") != "failed" and time.monotonic() < deadline:
            time.sleep(0.05)
        if (show("ActiveState"), show("ExecMainStatus")) != ("failed", "78"):
            sys.exit("it works and does not answer: " + said(since))
    return show("ActiveState") == "active", said(since)


def main(seed, count):
    rng = random.Random(seed)
    figures = dict.fromkeys(("refused", "told", "no-effect", "silent"), 0)

    def note(what, why=""):
        figures[what] += 1
        if what == "silent":
            print("silent:", why, file=sys.stderr)

    whole = digest(KEPT + "/log")
    known = {whole, without_the_last(KEPT + "/log")}
    for n in range(count):
        kind = ("closed", "log", "log-wal", "config")[n % 4]
        name = "%s of seed %d, round %d" % (kind, seed, n)
        if kind == "config":
            restore("closed")
            shutil.copy(CONFIG, KEPT + "/config")
            flip(CONFIG, rng)
            works, words = start(False)
            shutil.copy(KEPT + "/config", CONFIG)
            if works:
                note("told" if CONFIG + ":" in words else "no-effect")
            elif CONFIG in words:
                note("refused")
            else:
                note("silent", name + ": " + words)
        else:
            restore(kind.removesuffix("-wal"))
            flip(DATABASE + ("-wal" if kind == "log-wal" else ""), rng)
            after = digest(DATABASE)
            found = damage(KEPT + "/look") if after is None else "other content"
            works, words = start(after is None)
            if not works:
                note("refused" if any(hint in words for hint in HINTS) else "silent", name + ": " + words)
            elif LOST in words:
                note("told")
            elif after is None or (kind == "log-wal" and after not in known):
                note("silent", "%s: %s" % (name, found))
            else:
                note("no-effect")
        stop()
    restore("closed")
    print(" ".join("%s=%d" % item for item in figures.items()))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
