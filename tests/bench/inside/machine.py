"""The machine that is measured: commands, CPU time of its parts, the orchestrator, and its database."""
import contextlib
import json
import os
import select
import sqlite3
import subprocess
import time

SERVICE = "archivist-orchestrator.service"
GROUPS = "/sys/fs/cgroup"
ORCHESTRATOR = GROUPS + "/archivist.slice/" + SERVICE
DROP_IN = "/etc/archivist/archivist.conf.d/95-bench.conf"
PLUGINS = "/etc/archivist/plugins"
DATABASE = "file:/var/lib/archivist/archivist.sqlite3?mode=ro"


class Failed(Exception):
    """Something did not work; slow is not failed."""


def text(*command, **more):
    """Runs the command; its standard output."""
    done = subprocess.run(command, capture_output=True, text=True, stdin=more.pop("stdin", subprocess.DEVNULL), **more)
    if done.returncode:
        raise Failed("%s: status %d: %s" % (" ".join(command)[:200], done.returncode, (done.stdout + done.stderr)[-2000:]))
    return done.stdout


def wall(*command, **more):
    """Milliseconds that the command took, from its start to its end."""
    began = time.monotonic()
    text(*command, **more)
    return (time.monotonic() - began) * 1000


def until(what, condition, seconds=60):
    """For what has no event to wait on."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise Failed("not within %s s: %s; what runs: %s" % (seconds, what, what_runs()[:2000]))
        time.sleep(0.02)


def unit(name, key):
    return text("systemctl", "show", "--property=" + key, "--value", name).strip()


def start():
    """The orchestrator is up afterwards."""
    subprocess.run(["systemctl", "reset-failed", SERVICE], capture_output=True)
    text("systemctl", "start", SERVICE)


def stop():
    text("systemctl", "stop", SERVICE)


def configure(*lines):
    os.makedirs(os.path.dirname(DROP_IN), exist_ok=True)
    with open(DROP_IN, "w") as file:
        file.write("\n".join(lines) + "\n")
    stop()
    start()


def plugin(name, hooks):
    """A plugin whose hooks are files by their names, known after the next start."""
    directory = os.path.join(PLUGINS, name)
    os.makedirs(directory, exist_ok=True)
    for file, script in [("config.json", '{"type": "object", "properties": {}}\n'), *hooks]:
        path = os.path.join(directory, file)
        with open(path, "w") as out:
            out.write(script)
        os.chmod(path, 0o755)
    return directory


def drop_in(prefix, *lines):
    """For units that exist only while they run; gone with the next boot."""
    directory = "/run/systemd/system/%s.service.d" % prefix
    os.makedirs(directory, exist_ok=True)
    with open(directory + "/90-bench.conf", "w") as file:
        file.write("[Service]\n" + "\n".join(lines) + "\n")
    text("systemctl", "daemon-reload")


def add(plugin_name, *urls, wait=False):
    """The id of the crawl."""
    words = ["archivist", "add", "--json", "--plugins", plugin_name] + ["--wait"] * wait
    return crawl_in(text(*words, *urls))


def crawl_in(answer):
    """The id in the first document that `add --json` printed."""
    return json.JSONDecoder().raw_decode(answer)[0]["crawl"]


def journal():
    """What the orchestrator said last."""
    return subprocess.run(["journalctl", "--quiet", "--no-pager", "--lines=15", "--unit=" + SERVICE], capture_output=True, text=True).stdout


def give_up():
    """Nothing is left for the next figure of what one came to grief with."""
    with contextlib.suppress(Failed, sqlite3.Error):
        start()
        for (crawl,) in rows("SELECT id FROM crawl WHERE status NOT IN ('sealed', 'cancelled')"):
            text("archivist", "cancel", "c%d" % crawl)
        text("systemctl", "stop", "floor-*.service")
        until("an end of all units", nothing_runs, 120)


def status_of(crawl):
    return rows("SELECT status FROM crawl WHERE id = ?", int(crawl[1:]))[0][0]


def rows(question, *values):
    with contextlib.closing(sqlite3.connect(DATABASE, uri=True, timeout=30)) as database:
        return database.execute(question, values).fetchall()


def what_runs():
    patterns = ["archivist-crawl-*.service", "archivist-snapshot-*", "archivist-hook-*.service", "floor-*.service"]
    return text("systemctl", "list-units", "--plain", "--no-legend", *patterns).strip()


def nothing_runs():
    return not what_runs()


def quiet():
    """All units of the work before are gone; the orchestrator is not there."""
    until("an end of all units", nothing_runs)
    stop()


# CPU time

def usage(group):
    """Milliseconds of a cgroup so far; 0 where there is none."""
    try:
        with open(group + "/cpu.stat") as file:
            return int(file.readline().split()[1]) / 1000
    except OSError:
        return 0.0


def manager():
    """Milliseconds of PID 1 so far, without what it forked: setting a unit up is that unit's."""
    with open("/proc/1/schedstat") as file:
        return int(file.read().split()[0]) / 1e6


def cpu():
    return {
        "orchestrator": usage(ORCHESTRATOR),
        "PID 1": manager(),
        "bus": usage(GROUPS + "/system.slice/dbus.service"),
        "journal": usage(GROUPS + "/system.slice/systemd-journald.service"),
        "everything": usage(GROUPS),
    }


def spent(before):
    after = cpu()
    return {name: after[name] - before[name] for name in after}


def tasks(pid):
    """Times that a thread of the process went to sleep, and so was woken up."""
    total = 0
    for task in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/status" % (pid, task)) as file:
            total += sum(int(line.split()[1]) for line in file if line.startswith("voluntary_ctxt"))
    return total


def memory(pid, key="VmRSS"):
    """Mebibytes."""
    with open("/proc/%d/status" % pid) as file:
        return next(int(line.split()[1]) / 1024 for line in file if line.startswith(key + ":"))


# cgroups

def group_of(name):
    return GROUPS + unit(name, "ControlGroup")


def processes(group):
    with contextlib.suppress(OSError), open(group + "/cgroup.procs") as file:
        return len(file.readlines())
    return 0


def emptied(group, act, seconds=60):
    """Milliseconds from `act`, a command, until the kernel has no process in the cgroup any more."""
    with open(group + "/cgroup.events") as events:
        watch = select.poll()
        watch.register(events, select.POLLPRI)
        began = time.monotonic()
        asked = subprocess.Popen(act, stdout=subprocess.DEVNULL)
        while populated(events):
            left = seconds - (time.monotonic() - began)
            if left <= 0:
                raise Failed("not within %s s: no process in %s" % (seconds, group))
            watch.poll(left * 1000)
        took = (time.monotonic() - began) * 1000
    if asked.wait(60):
        raise Failed("%s: status %d" % (" ".join(act), asked.returncode))
    return took


def populated(events):
    """A cgroup that was removed has no process."""
    try:
        events.seek(0)
        return "populated 1" in events.read()
    except OSError:
        return False
