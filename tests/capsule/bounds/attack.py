"""Attacks of a member of the group, or of a user without rights, on the orchestrator; and a meter of the time that other callers
wait meanwhile. Requires hostile.py of tests/faults in the same directory.

attack.py meter FILE [METHOD]   calls the method, Status, until the file is there: "CALLS MEDIAN MAX" in milliseconds
attack.py pipes COUNT           Add with pipes that never end, for 10 s: what came of the calls that were answered
attack.py large COUNT MIB       Add of lists of that size at once: the answers
attack.py small COUNT           Add of one URL: the answers
attack.py hold CRAWL COUNT      Hold of a crawl, descriptors kept: "HELD ANSWER" of the call that was refused
attack.py quote MIB             Check with a kind of that length: the answer, and whether Status is answered then
attack.py forge SECONDS NAME... signals of systemd that are none, to these unique names: how many were sent
"""
import collections
import os
import select
import socket
import statistics
import struct
import sys
import time

from hostile import Bus

NAME, PATH, MANAGER = "org.archivist1", "/org/archivist1", "org.archivist1.Manager"


def call(bus, member, signature="", arguments=()):
    return bus.call(NAME, PATH, MANAGER, member, signature, arguments)


def memfd(text):
    fd = os.memfd_create("urls")
    os.write(fd, text)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


def meter(until, method="Status"):
    bus, times = Bus(), []
    while not os.path.exists(until):
        began = time.monotonic()
        answer = call(bus, method)
        # The bus refuses any call while many with descriptors wait to be read (max_outgoing_unix_fds, dbus-daemon(1)).
        while answer == "org.freedesktop.DBus.Error.LimitsExceeded":
            answer = call(bus, method)
        times.append((time.monotonic() - began) * 1000)
        if answer != "answered":
            sys.exit(answer)
        time.sleep(0.005)
    print(len(times), round(statistics.median(times), 1), round(max(times), 1))


def pipes(count):
    """As many connections as it takes: the bus lets each wait for a number of answers only."""
    kept, buses, answers = [], [], collections.Counter()
    for n in range(int(count)):
        if n % 60 == 0:
            buses.append(Bus())
        reading, writing = os.pipe()
        os.write(writing, b"no URL\n")
        buses[-1].send(NAME, PATH, MANAGER, "Add", "hs", [reading, "{}"])
        os.close(reading)
        kept.append(writing)
    until = time.monotonic() + 10
    while (left := until - time.monotonic()) > 0:
        ready, _, _ = select.select([bus.socket for bus in buses], [], [], left)
        for bus in buses:
            if bus.socket in ready:
                kind, fields = bus.receive()
                if kind in (2, 3):
                    answers["answered" if kind == 2 else fields.get(4, "?")] += 1
    print(*(f"{name}={number}" for name, number in sorted(answers.items())))


def large(count, mib):
    fd = os.memfd_create("urls")
    for part in range(int(mib)):
        lines = (b"http://large.test/%045d\n" % n for n in range(part << 14, part + 1 << 14))
        os.write(fd, b"".join(lines))
    buses = []
    for _ in range(int(count)):
        bus = Bus()
        bus.socket.settimeout(180)
        again = os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
        bus.send(NAME, PATH, MANAGER, "Add", "hs", [again, '{"plugins": ["hashes"]}'])
        buses.append(bus)
    for bus in buses:
        while True:
            kind, fields = bus.receive()
            if kind in (2, 3) and fields.get(5) == bus.serial:
                print("answered" if kind == 2 else fields.get(4, "?"))
                break


def small(count):
    bus = Bus()
    for _ in range(int(count)):
        print(call(bus, "Add", "hs", [memfd(b"http://small.test/\n"), '{"plugins": ["hashes"]}']))


class Keeping:
    """A socket whose descriptors are kept: a recv without room for them would drop them."""

    def __init__(self, plain):
        self.plain, self.kept = plain, []
        self.sendmsg, self.sendall = plain.sendmsg, plain.sendall

    def recv(self, size):
        data, ancillary, _, _ = self.plain.recvmsg(size, socket.CMSG_SPACE(64))
        for _, _, packed in ancillary:
            self.kept.extend(struct.unpack(f"{len(packed) // 4}i", packed[:len(packed) // 4 * 4]))
        return data


def hold(crawl, count):
    bus = Bus()
    bus.socket = Keeping(bus.socket)
    for n in range(int(count)):
        answer = call(bus, "Hold", "sb", [crawl, False])
        if answer != "answered":
            print(n, answer)
            return
    print(count, "answered")


def quote(mib):
    bus = Bus()
    print(bus.call(NAME, PATH, "org.archivist1.Watches", "Check", "sas", ["x", "k" * (int(mib) << 20)]), end=" ")
    print(call(Bus(), "Status"))


def forge(seconds, *names):
    bus, count, until = Bus(), 0, time.monotonic() + float(seconds)
    while time.monotonic() < until:
        for name in names:
            bus.send(name, "/org/freedesktop/systemd1", "org.freedesktop.systemd1.Manager", "Reloading", "b", [False], kind=4)
            count += 1
    print(count)


globals()[sys.argv[1]](*sys.argv[2:])
