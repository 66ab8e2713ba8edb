#!/usr/bin/python3
"""A client of the bus that subscribes to the signals about pages and stays connected: the protocol of D-Bus, by hand."""
import os
import socket
import struct
import sys

RETURN, SIGNAL = 2, 4


def padded(data):
    return data + b"\0" * (-len(data) % 8)


def field(code, signature, value):
    """A header field that is an object path or a string."""
    text = value.encode()
    return struct.pack("<BBcBI", code, 1, signature, 0, len(text)) + text + b"\0"


def exactly(count):
    data = b""
    while len(data) < count:
        piece = bus.recv(count - len(data))
        if not piece:
            sys.exit("the bus closed the connection")
        data += piece
    return data


def message():
    """Reads a message; returns its type and the rest."""
    head = exactly(16)
    kind, body, fields = struct.unpack("<xB2xI4xI", head)
    return kind, exactly(fields + -fields % 8 + body)


def call(serial, destination, path, interface, member):
    """Calls a method without arguments, and waits for its answer."""
    fields = b""
    for code, signature, value in (1, b"o", path), (2, b"s", interface), (3, b"s", member), (6, b"s", destination):
        fields = padded(fields) + field(code, signature, value)
    bus.sendall(struct.pack("<cBBBIII", b"l", 1, 0, 1, 0, serial, len(fields)) + padded(fields))
    kind, rest = message()
    while kind == SIGNAL:
        kind, rest = message()
    assert kind == RETURN, rest


bus = socket.socket(socket.AF_UNIX)
bus.connect("/run/dbus/system_bus_socket")
bus.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
assert bus.recv(1000).startswith(b"OK")
bus.sendall(b"BEGIN\r\n")
call(1, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello")
call(2, "org.archivist1", "/org/archivist1", "org.archivist1.Manager", "Subscribe")
notify = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
notify.connect(os.environ["NOTIFY_SOCKET"].replace("@", "\0", 1))
notify.send(b"READY=1")
while True:
    message()
