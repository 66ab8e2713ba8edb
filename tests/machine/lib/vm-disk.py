"""Puts on a disk what a machine wrote to it, from the log that qemu's blklogwrites keeps.

usage: vm-disk.py DISK LOG all | SEED

all: the machine was switched off, everything is on the disk. SEED: its power was cut. Then the disk has what was written
before the last flush and what was written through; of everything later each piece of 4 KiB is there or is not, as a random
generator with that seed says. That is less than a disk with a volatile cache owes, which is what makes it a test; what it
does not do is tear within a piece, or lie about a flush.
"""
import random
import struct
import sys

MAGIC = 0x6A736677736872
FLUSH, FUA, DISCARD = 1, 2, 4
PIECE = 4096


def entries(log):
    """(flags, offset, data) of each request, up to where the log was cut off itself."""
    magic, _, _, size = struct.unpack("<QQQI", log.read(28))
    if magic != MAGIC:
        sys.exit("vm-disk.py: %s is not a log of writes" % log.name)
    place = size
    while True:
        log.seek(place)
        head = log.read(size)
        if len(head) < size:
            return
        sector, sectors, flags, length = struct.unpack("<QQQQ", head[:32])
        if (sector, sectors, flags, length) == (0, 0, 0, 0):
            return
        place += size
        data = b""
        if not flags & DISCARD and sectors:
            data = log.read(sectors * size)
            if len(data) < sectors * size:
                return
            place += sectors * size
        yield flags, sector * size, data


def last_flush(log):
    """How many requests there are up to the last flush, that included."""
    log.seek(0)
    return max((n for n, (flags, _, _) in enumerate(entries(log), 1) if flags & FLUSH), default=0)


def main(path, log, word):
    dice = None if word == "all" else random.Random(int(word))
    kept = lost = 0
    with open(log, "rb") as log, open(path, "r+b") as disk:
        certain = last_flush(log)
        log.seek(0)
        for number, (flags, offset, data) in enumerate(entries(log), 1):
            sure = dice is None or number <= certain or flags & FUA
            for start in range(0, len(data), PIECE):
                if sure or dice.random() < 0.5:
                    disk.seek(offset + start)
                    disk.write(data[start : start + PIECE])
                    kept += 1
                else:
                    lost += 1
    if dice is not None:
        print("kept=%d lost=%d seed=%s" % (kept, lost, word))


main(*sys.argv[1:])
