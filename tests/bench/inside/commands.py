"""P8, P10: answers on the command line, and the package."""
import os

from machine import configure, start, text, wall

DEB = "/var/cache/bench.deb"


def answers(notes, interleave):
    configure("[Orchestrator]")
    took = {
        ("archivist list crawls", "archivist"): [],
        ("archivist status", "archivist"): [],
        ("archivist --version: no question asked", "floor"): [],
        ("busctl, one call of the manager", "floor"): [],
    }
    commands = [
        ["archivist", "list", "crawls"],
        ["archivist", "status"],
        ["archivist", "--version"],
        ["busctl", "call", "org.archivist1", "/org/archivist1", "org.archivist1.Manager", "Status"],
    ]

    def measure(key, command):
        return lambda: took[key].append(wall(*command))

    interleave([measure(key, command) for key, command in zip(took, commands)], notes.counts(20, 200))
    for (what, who), values in took.items():
        notes.note("P8", who, what, "ms", values)


def install(notes, interleave):
    """Offline: in a namespace without a network."""
    notes.note("P10", "archivist", "size of the package", "MB", [os.path.getsize(DEB) / 1e6])
    quietly = {"env": {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}}
    took = {"apt-get install": [], "dpkg -i": []}

    def measure(who, *command):
        def run():
            text("apt-get", "-q", "-y", "purge", "archivist", **quietly)
            took[who].append(wall("unshare", "--net", *command, **quietly))
        return run

    interleave([measure("apt-get install", "apt-get", "-q", "-y", "install", DEB),
                measure("dpkg -i", "dpkg", "-i", DEB)], notes.counts(1, 5))
    start()
    for who, values in took.items():
        notes.note("P10", who, "installing the package", "ms", values)
