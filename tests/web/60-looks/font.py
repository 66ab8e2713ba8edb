"""A font whose letters are all solid boxes as high and as wide as the font size."""

import struct

LETTERS = range(0x21, 0x7F)
EM = 1000


def glyph():
    """A square of the size of the em."""
    corners = [(0, 0), (0, EM), (EM, EM), (EM, 0)]
    data = struct.pack(">hhhhhHH", 1, 0, 0, EM, EM, len(corners) - 1, 0) + b"\x01" * len(corners)
    for axis in (0, 1):
        last = 0
        for corner in corners:
            data += struct.pack(">h", corner[axis] - last)
            last = corner[axis]
    return data + b"\0" * (-len(data) % 4)


def character_map():
    """All letters to glyph 1, by a table of format 4."""
    count = len(LETTERS)
    ends = struct.pack(">HH", LETTERS[-1], 0xFFFF)
    starts = struct.pack(">HH", LETTERS[0], 0xFFFF)
    body = struct.pack(">HHHH", 4, 4, 1, 0) + ends + struct.pack(">H", 0) + starts
    body += struct.pack(">hh", 0, 1) + struct.pack(">HH", 4, 0) + struct.pack(f">{count}H", *[1] * count)
    table = struct.pack(">HHH", 4, 6 + len(body), 0) + body
    return struct.pack(">HHHHL", 0, 1, 3, 1, 12) + table


def names():
    text = [(1, "Boxes"), (2, "Regular"), (4, "Boxes"), (6, "Boxes")]
    records, strings = b"", b""
    for number, value in text:
        encoded = value.encode("utf-16-be")
        records += struct.pack(">6H", 3, 1, 0x409, number, len(encoded), len(strings))
        strings += encoded
    return struct.pack(">HHH", 0, len(text), 6 + len(records)) + records + strings


def tables():
    outline = glyph()
    windows = struct.pack(">HhHHH11h10s4L4sHHHhhhHH", 0, EM, 400, 5, 0, *[0] * 11, b"", 1, 0, 0, 0, b"NONE",
                          0x40, LETTERS[0], LETTERS[-1], EM, 0, 0, EM, 0)
    return {
        b"OS/2": windows,
        b"cmap": character_map(),
        b"glyf": outline,
        b"head": struct.pack(">LLLLHHqqhhhhHHhhh", 0x10000, 0x10000, 0, 0x5F0F3CF5, 3, EM, 0, 0, 0, 0, EM, EM, 0, 8, 2, 1, 0),
        b"hhea": struct.pack(">LhhhHhhhhhhhhhhhH", 0x10000, EM, 0, 0, EM, 0, 0, EM, 1, 0, 0, 0, 0, 0, 0, 0, 2),
        b"hmtx": struct.pack(">HhHh", EM, 0, EM, 0),
        b"loca": struct.pack(">LLL", 0, 0, len(outline)),
        b"maxp": struct.pack(">LH13H", 0x10000, 2, 4, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0),
        b"name": names(),
        b"post": struct.pack(">LLhhLLLLL", 0x30000, 0, 0, 0, 0, 0, 0, 0, 0),
    }


def checksum(data):
    data += b"\0" * (-len(data) % 4)
    return sum(struct.unpack(f">{len(data) // 4}L", data)) & 0xFFFFFFFF


def boxes():
    """The font as bytes of a TrueType file."""
    parts = tables()
    directory = struct.pack(">LHHHH", 0x10000, len(parts), 128, 3, len(parts) * 16 - 128)
    offset, body = len(directory) + 16 * len(parts), b""
    for tag, data in sorted(parts.items()):
        directory += tag + struct.pack(">LLL", checksum(data), offset + len(body), len(data))
        body += data + b"\0" * (-len(data) % 4)
    return directory + body
