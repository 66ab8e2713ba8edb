"""What a user would take instead. Each runs the trivial hook as it is, without a sandbox unless it says otherwise."""
import os
import pwd
import shutil
import subprocess
import time
import xmlrpc.client

from machine import Failed, PLUGINS, nothing_runs, text, until, wall

STATE = "/srv/bench"
ABX_DL = "/opt/abx-dl/bin/abx-dl"
# Theirs, out of archivist's sight.
ABX_PLUGINS = "/opt/abx-plugins"
LIBRARY = "/var/lib/archivist/lib"
SUPERVISOR = "/opt/supervisor"
SUPERVISOR_PORT = 9741
supervisor = None


def hook():
    """Program, arguments, environment and directory, as the floor has them."""
    def words(name):
        with open(STATE + "/" + name) as file:
            return [word for word in file.read().split("\0") if word]

    with open(STATE + "/binds") as file:
        places = file.read().splitlines()
    return words("argv"), dict(word.split("=", 1) for word in words("environ")), places


def contestants(notes, count, each, whole):
    """Functions that run `count` hooks one after another; what they take goes to `each` and `whole`."""
    argv, environment, places = hook()
    here = {"env": environment, "cwd": places[0]}
    found = [lambda: systemd_run(argv, environment, places, count, each["systemd-run --wait"], whole["systemd-run --wait"])]
    each["systemd-run --wait"], whole["systemd-run --wait"] = [], []
    if available(notes, "P1", "GNU parallel", shutil.which("parallel")):
        each["GNU parallel"], whole["GNU parallel"] = [], []

        def parallel():
            took = in_parallel(1, count, argv, here)
            whole["GNU parallel"].append(took)
            each["GNU parallel"].append(took / count)
        found.append(careful(notes, "P1", "GNU parallel", parallel))
    if available(notes, "P1", "supervisord", os.path.isdir(SUPERVISOR)):
        begin_supervisor(argv, environment, places)
        each["supervisord"], whole["supervisord"] = [], []
        found.append(careful(notes, "P1", "supervisord", lambda: supervised(count, each["supervisord"], whole["supervisord"])))
    if available(notes, "P1", "pueue", shutil.which("pueued")):
        each["pueue"], whole["pueue"] = [], []

        def queue():
            took = in_pueue(1, count, argv, here)
            whole["pueue"].append(took)
            each["pueue"].append(took / count)
        found.append(careful(notes, "P1", "pueue", queue))
    if available(notes, "P1", "abx-dl", os.path.exists(ABX_DL)):
        whole["abx-dl"] = []
        found.append(careful(notes, "P1", "abx-dl", lambda: whole["abx-dl"].append(abx_dl("benchtrivial", count))))
    return found


def eight(notes, count, rate):
    """The same, eight at once; units a second go to `rate`."""
    argv, environment, places = hook()
    here = {"env": environment, "cwd": places[0]}
    found = []
    if available(notes, "P2", "GNU parallel", shutil.which("parallel")):
        rate["GNU parallel"] = []
        found.append(careful(notes, "P2", "GNU parallel", lambda: rate["GNU parallel"].append(count * 1000 / in_parallel(8, count, argv, here))))
    if available(notes, "P2", "pueue", shutil.which("pueued")):
        rate["pueue"] = []
        found.append(careful(notes, "P2", "pueue", lambda: rate["pueue"].append(count * 1000 / in_pueue(8, count, argv, here))))
    notes.left_out("P2", "supervisord", "has no limit of concurrent programs")
    return found


def careful(notes, figure, who, function):
    """A contestant that does not do the job is out of the rest of it, with the reason; that is no failure of ours."""
    out = []

    def run():
        if not out:
            try:
                function()
            except Exception as error:
                out.append(error)
                notes.left_out(figure, who, "in the end: %s" % " ".join(str(error).split())[:300])
    return run


def available(notes, figure, who, is_there):
    if not is_there:
        reason = "not installed"
        if os.path.exists(STATE + "/left-out"):
            with open(STATE + "/left-out") as file:
                reason = next((line.split("\t", 1)[1].strip() for line in file if line.startswith(who + "\t")), reason)
        notes.left_out(figure, who, reason)
    return is_there


def unit_options(environment, places):
    """The properties of a hook's unit that are not in drop-ins; those hold for its name."""
    split = places.index("-")
    return ["--property=BindPaths=" + " ".join(places[1:split]), "--property=BindReadOnlyPaths=" + " ".join(places[split + 1:]),
            "--uid=archivist-hook-1", "--property=WorkingDirectory=" + places[0], "--property=StandardOutput=null", "--property=RuntimeMaxSec=60",
            "--slice=floor-crawl-1.slice", *("--setenv=%s=%s" % pair for pair in environment.items())]


def systemd_run(argv, environment, places, count, each, whole):
    """In the sandbox of a hook."""
    total = 0
    for number in range(count):
        took = wall("systemd-run", "--quiet", "--wait", "--collect", "--unit=floor-hook-run%d" % number,
                    *unit_options(environment, places), *argv)
        each.append(took)
        total += took
    whole.append(total)
    until("an end of the units of systemd-run", nothing_runs)


def in_parallel(at_once, count, argv, here):
    numbers = "\n".join(map(str, range(count)))
    environment = {**here["env"], "HOME": STATE, "PATH": "/usr/bin:/bin"}
    began = time.monotonic()
    done = subprocess.run(["parallel", "--will-cite", "-j%d" % at_once, "-N0", "--quote", *argv], input=numbers, text=True,
                          capture_output=True, env=environment, cwd=here["cwd"])
    took = (time.monotonic() - began) * 1000
    if done.returncode or len(done.stdout.splitlines()) != count:
        raise Failed("parallel: status %d: %s" % (done.returncode, done.stderr[-1000:]))
    return took


def in_pueue(at_once, count, argv, here):
    text("pueue", "parallel", str(at_once))
    text("pueue", "clean")
    began = time.monotonic()
    for _ in range(count):
        text("pueue", "add", "--escape", "--working-directory", here["cwd"], "--", *argv)
    text("pueue", "wait", "--quiet")
    return (time.monotonic() - began) * 1000


def begin_supervisor(argv, environment, places):
    """One program, started as often as it takes."""
    global supervisor
    config = STATE + "/supervisord.conf"
    with open(STATE + "/hook.sh", "w") as file:
        file.write("#!/bin/sh\nexec %s >/dev/null\n" % " ".join("'%s'" % word for word in argv))
    os.chmod(STATE + "/hook.sh", 0o755)
    with open(config, "w") as file:
        file.write("\n".join([
            "[supervisord]", "nodaemon=true", "logfile=/dev/null", "logfile_maxbytes=0", "pidfile=%s/supervisor.pid" % STATE,
            "[inet_http_server]", "port=127.0.0.1:%d" % SUPERVISOR_PORT,
            "[rpcinterface:supervisor]", "supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface",
            "[program:hook]", "command=%s/hook.sh" % STATE, "directory=" + places[0], "autostart=false", "autorestart=false",
            "startsecs=0", "stdout_logfile=NONE", "stderr_logfile=NONE"]) + "\n")
    supervisor = subprocess.Popen(["python3", "-m", "supervisor.supervisord", "-c", config], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                  env={**os.environ, **environment, "PYTHONPATH": SUPERVISOR, "PATH": "/usr/bin:/bin"})
    until("supervisord", supervisor_answers, 30)


def supervisor_calls():
    return xmlrpc.client.ServerProxy("http://127.0.0.1:%d/RPC2" % SUPERVISOR_PORT).supervisor


def supervisor_answers():
    try:
        return supervisor_calls().getState()["statename"] == "RUNNING"
    except OSError:
        return False


def supervised(count, each, whole):
    calls = supervisor_calls()
    before = time.monotonic()
    for _ in range(count):
        began = time.monotonic()
        calls.startProcess("hook", False)
        while calls.getProcessInfo("hook")["statename"] in ("STARTING", "RUNNING"):
            pass
        each.append((time.monotonic() - began) * 1000)
    if calls.getProcessInfo("hook")["exitstatus"]:
        raise Failed("supervisord: %s" % calls.getProcessInfo("hook"))
    whole.append((time.monotonic() - before) * 1000)


def end():
    global supervisor
    if supervisor:
        supervisor.terminate()
        supervisor.wait(60)
        supervisor = None


def abx_dl(plugins, least, url="http://bench.test/1", directory=PLUGINS):
    """Milliseconds for one page, of which so many results are good at least."""
    home, out = STATE + "/abx-dl", STATE + "/abx-dl/out"
    user = pwd.getpwnam("archivist-hook")
    shutil.rmtree(out, ignore_errors=True)
    for place in (home, out):
        os.makedirs(place, exist_ok=True)
        os.chown(place, user.pw_uid, user.pw_gid)
    environment = {"HOME": home, "ABX_PLUGINS_DIR": directory, "LANG": "C.UTF-8", **library(home)}
    took = wall(ABX_DL, "dl", "--no-install", "--plugins", plugins, "--dir", out, url, env=environment, cwd=out,
                user=user.pw_uid, group=user.pw_gid, extra_groups=[])
    with open(out + "/index.jsonl") as file:
        good = file.read().count('"succeeded"')
    if good < least:
        raise Failed("abx-dl: %d good results, not %d" % (good, least))
    return took


def library(home):
    """Its programs are those that archivist's set of plugins brought; it may fetch none."""
    modules, venv = LIBRARY + "/npm/node_modules", LIBRARY + "/pip/venv"
    there = {"PATH": "%s/bin:%s/bin:%s/.bin:/usr/local/bin:/usr/bin:/bin" % (LIBRARY, venv, modules), "VIRTUAL_ENV": venv, "LIB_DIR": LIBRARY,
             "NODE_PATH": modules, "NODE_MODULES_DIR": modules, "CHROME_BINARY": "/usr/bin/chromium", "UV_OFFLINE": "1", "PIP_NO_INDEX": "1",
             "UV_PYTHON_DOWNLOADS": "never", "npm_config_offline": "true"}
    return there if os.path.isdir(modules) else {"LIB_DIR": home + "/lib", "PATH": "/usr/local/bin:/usr/bin:/bin"}
