"""A worker of a pool for tests: DIRECTORY/modeINDEX says how it behaves, DIRECTORY/calm that all are good.

good: beats. never: does not. crash: exits at once. hang: beats once. ignore: beats, and takes no notice of SIGTERM. random: any of that
at any time, with children that leave its session.
"""

import os
import random
import signal
import socket
import subprocess
import sys
import time

directory = sys.argv[1]
index = os.environ.get("ARCHIVIST_WORKER_INDEX", "0")
EVERY = 0.3
# Of each beat, in mode random: a mean life of three seconds.
CHANCE = 0.1


def beat():
    """What archivist heartbeat does, without a process for each."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address is None:
        return
    states = ["WATCHDOG=1"]
    if "ARCHIVIST_HEARTBEAT_USEC" in os.environ:
        states.insert(0, "WATCHDOG_USEC=" + os.environ["ARCHIVIST_HEARTBEAT_USEC"])
    if address.startswith("@"):
        address = "\0" + address[1:]
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as to:
        to.sendto("\n".join(states).encode(), address)


def mode():
    if os.path.exists(f"{directory}/calm"):
        return "good"
    try:
        with open(f"{directory}/mode{index}", encoding="ascii") as file:
            return file.read().strip()
    except FileNotFoundError:
        return "good"


def hang():
    while True:
        time.sleep(1000)


def misbehave():
    what = random.choice(["exit", "kill", "segv", "hang", "deaf"])
    if what == "exit":
        os._exit(random.choice([0, 1, 3, 255]))
    if what == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if what == "segv":
        os.kill(os.getpid(), signal.SIGSEGV)
    if what == "deaf":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    hang()


def main():
    name = os.environ.get("ARCHIVIST_WORKER_NAME")
    print("worker", index, name, *sys.argv[2:], flush=True)
    is_random = mode() == "random"
    if mode() == "crash":
        sys.exit(3)
    if mode() == "ignore" or (is_random and random.random() < 0.3):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if is_random and random.random() < 0.5:
        subprocess.Popen(["sleep", "1000"], start_new_session=True)
    while True:
        now = mode()
        if now != "never":
            beat()
        if now == "hang":
            hang()
        if now == "random" and random.random() < CHANCE:
            misbehave()
        time.sleep(EVERY)


main()
