"""Calls every method of the orchestrator without the right to, and prints one line "METHOD ANSWER" for each.
It implements D-Bus itself, to send messages that a well-behaved library would not."""
import array
import os
import socket
import struct
import sys

BUS = "/run/dbus/system_bus_socket"
# Of each method, a line "INTERFACE.MEMBER SIGNATURE", next to this program.
METHODS = os.path.splitext(__file__)[0] + ".methods"
VICTIMS = ("c1", "s1", "", "../../etc/passwd", "x" * 100000, '{"key":"a/b"}')


class Writer:
    def __init__(self):
        self.data = bytearray()

    def align(self, to):
        self.data += bytes(-len(self.data) % to)

    def u32(self, number):
        self.align(4)
        self.data += struct.pack("<I", number)

    def text(self, value):
        raw = value.encode()
        self.u32(len(raw))
        self.data += raw + b"\0"

    def signature(self, value):
        self.data += bytes([len(value)]) + value.encode() + b"\0"


class Bus:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(20)
        self.socket.connect(BUS)
        self.serial = 0
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.getuid()).encode().hex().encode() + b"\r\n")
        self.expect(b"OK")
        self.socket.sendall(b"NEGOTIATE_UNIX_FD\r\n")
        self.expect(b"AGREE")
        self.socket.sendall(b"BEGIN\r\n")
        self.call("org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "Hello", "", [])

    def expect(self, word):
        line = self.socket.recv(4096)
        if not line.startswith(word):
            sys.exit("the bus said %r" % line)

    def call(self, to, path, interface, member, signature, arguments):
        """The answer: "answered", or the name of an error."""
        self.send(to, path, interface, member, signature, arguments)
        while True:
            kind, fields = self.receive()
            if fields.get(5) == self.serial:
                return "answered" if kind == 2 else fields.get(4, "?")

    def send(self, to, path, interface, member, signature, arguments, kind=1):
        """Sends a call (1) or a signal (4), without waiting for anything."""
        body, files = Writer(), []
        for code, argument in zip(codes(signature), arguments):
            if code == "s":
                body.text(argument)
            elif code == "b":
                body.u32(int(argument))
            elif code == "x":
                body.align(8)
                body.data += struct.pack("<q", argument)
            elif code == "h":
                body.u32(len(files))
                files.append(argument)
            elif code == "A":
                inner = Writer()
                inner.text(argument)
                body.u32(len(inner.data))
                body.data += inner.data
        self.serial += 1
        head = Writer()
        head.data += b"l" + bytes([kind]) + b"\x00\x01"
        head.u32(len(body.data))
        head.u32(self.serial)
        fields = Writer()
        entries = [(1, "o", path), (2, "s", interface), (3, "s", member), (6, "s", to)]
        if signature:
            entries.append((8, "g", signature))
        if files:
            entries.append((9, "u", len(files)))
        for code, sort, value in entries:
            fields.align(8)
            fields.data += bytes([code])
            fields.signature(sort)
            if sort == "g":
                fields.signature(value)
            elif sort == "u":
                fields.u32(value)
            else:
                fields.text(value)
        head.u32(len(fields.data))
        head.data += fields.data
        head.align(8)
        descriptors = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", files))] if files else []
        packet = bytes(head.data + body.data)
        sent = self.socket.sendmsg([packet], descriptors)
        self.socket.sendall(packet[sent:])

    def receive(self):
        start = self.exactly(16)
        length, _, size = struct.unpack("<III", start[4:16])
        rest = self.exactly((size + 7) // 8 * 8)
        self.exactly(length)
        return start[1], fields_of(rest[:size])

    def exactly(self, count):
        data = b""
        while len(data) < count:
            more = self.socket.recv(count - len(data))
            if not more:
                raise ConnectionError("the bus hung up")
            data += more
        return data


def fields_of(data):
    fields, at = {}, 0
    while at < len(data):
        at += -at % 8
        code, kind = data[at], chr(data[at + 2])
        at += 4
        if kind == "u":
            at += -at % 4
            fields[code] = struct.unpack_from("<I", data, at)[0]
            at += 4
        elif kind == "g":
            at += data[at] + 2
        else:
            at += -at % 4
            length = struct.unpack_from("<I", data, at)[0]
            fields[code] = data[at + 4:at + 4 + length].decode()
            at += 4 + length + 1
    return fields


def codes(signature):
    """The types of the arguments: "A" is an array of strings."""
    return signature.replace("as", "A")


def main():
    victims = VICTIMS + tuple(sys.argv[1:])
    only = os.environ.get("ONLY")
    with open(METHODS, encoding="ascii") as methods:
        for line in methods:
            method, signature = line.split()
            for victim in victims if only in (None, method) else ():
                print(method, attempt(method, signature.strip("-"), victim))


def attempt(method, signature, victim):
    interface, _, member = method.rpartition(".")
    try:
        bus = Bus()
        with open("/dev/null", "rb") as nothing:
            arguments = [{"h": nothing.fileno(), "b": True, "x": 1}.get(kind, victim) for kind in codes(signature)]
            return bus.call("org.archivist1", "/org/archivist1", "org.archivist1." + interface, member, signature, arguments)
    except (OSError, ConnectionError) as error:
        return "unreachable:" + type(error).__name__


if __name__ == "__main__":
    main()
