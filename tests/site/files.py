"""The files of the test site that are not pages: pictures, a PDF, a download."""

import struct
import zlib

STYLE = b"body { font-family: sans-serif; margin: 2em; background: #fdfbf5 }\nh1 { color: #285aa0 }\n"
SCRIPT = b"window.archivistTestSite = true;\n"
DOWNLOAD = bytes(range(256)) * 256


def png(width, height, colour):
    """A PNG of one colour with a lighter diagonal, so that a picture of it can be told from a blank."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    light = bytes(min(255, part + 80) for part in colour)
    rows = b"".join(
        b"\0" + b"".join(light if (x + y) % 16 < 4 else bytes(colour) for x in range(width)) for y in range(height)
    )
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def ico():
    """An ICO file that holds one PNG of 16 by 16."""
    image = png(16, 16, (40, 160, 90))
    return struct.pack("<HHH", 0, 1, 1) + struct.pack("<BBBBHHII", 16, 16, 0, 0, 1, 24, len(image), 22) + image


def pdf(text):
    """A PDF of one page with one line of text and a correct cross-reference table."""
    stream = f"BT /F1 24 Tf 72 720 Td ({text}) Tj ET".encode()
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%s\nendstream" % (len(stream), stream),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    out, offsets = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    return out + b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (
        len(objects) + 1,
        table,
        len(objects) + 1,
        len(out),
    )
