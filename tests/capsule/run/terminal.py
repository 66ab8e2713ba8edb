"""Runs a command on a terminal of its own and types on it.

terminal.py SCRIPT COMMAND...: the script's steps are separated by '::'
    see TEXT      wait until the terminal has shown TEXT since the last step of this kind
    type TEXT     type TEXT and Enter
    interrupt     press Ctrl-C
    run COMMAND   run a command of the shell, which must succeed
    hang-up       close the terminal
What was shown goes to standard output, the exit status is that of the command.
"""

import fcntl, os, pty, select, struct, subprocess, sys, termios, time

DEADLINE = time.monotonic() + 90
shown, seen = b"", 0


def read(wait):
    global shown
    if not select.select([terminal], [], [], wait)[0]:
        return True
    try:
        data = os.read(terminal, 65536)
    except OSError:
        data = b""
    shown += data
    return bool(data)


def see(text):
    global seen
    while shown.find(text, seen) < 0:
        open_still = read(0.5)
        if time.monotonic() > DEADLINE or not open_still:
            sys.stdout.buffer.write(shown)
            sys.exit(f"\nnot shown: {text!r}")
    seen = shown.find(text, seen) + len(text)


script, command = sys.argv[1], sys.argv[2:]
child, terminal = pty.fork()
if child == 0:
    os.execvp(command[0], command)
fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 120, 0, 0))
for step in filter(None, map(str.strip, script.split("::"))):
    verb, _, text = step.partition(" ")
    if verb == "see":
        see(text.encode())
    elif verb == "type":
        os.write(terminal, text.encode() + b"\n")
    elif verb == "interrupt":
        os.write(terminal, b"\x03")
    elif verb == "run":
        subprocess.run(text, shell=True, check=True)
    elif verb == "hang-up":
        os.close(terminal)
        terminal = None
    else:
        sys.exit(f"no such step: {step}")
while terminal is not None and read(0.5) and time.monotonic() < DEADLINE:
    pass
status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
sys.stdout.buffer.write(shown)
sys.stdout.flush()
sys.exit(status if status >= 0 else 128 - status)
