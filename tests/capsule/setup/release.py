#!/usr/bin/python3
"""Checks what setup-abx-library.py reads in a release, and what it does if sources lack versions. usage: release.py PROGRAM"""

import importlib.machinery
import importlib.util
import json
import sys
import tempfile
from pathlib import Path

top = Path(tempfile.mkdtemp())
loader = importlib.machinery.SourceFileLoader("library", sys.argv[1])
sys.argv = ["setup-abx-library.py", str(top / "lib")]
library = importlib.util.module_from_spec(importlib.util.spec_from_loader("library", loader))
sys.modules["library"] = library
loader.exec_module(library)
library.PLUGINS = top


def plugin(name, **config):
    (top / name).mkdir()
    (top / name / "config.json").write_text(json.dumps(config))


def enabled(default, **more):
    return {"default": default, **more}


def needs(name, providers, **more):
    return {"name": name, "binproviders": providers, **more}


plugin(
    "chrome",
    properties={"NODE_BINARY": enabled("node")},
    required_binaries=[
        needs("{NODE_BINARY}", "env,node,apt", min_version="24.22.1"),
        needs("bus", "pnpm", overrides={"pnpm": {"install_args": ["bus@2.5.79", "--min-release-age=0"]}}),
        needs("{CHROME_BINARY}", "puppeteer"),
        needs("wget", "env,apt"),
    ],
)
plugin("off", properties={"OFF_ENABLED": enabled(False)}, required_binaries=[needs("off", "npm")])
plugin("manual", **{"x-auto-run": False}, required_binaries=[needs("manual", "npm")])
plugin(
    "reader",
    properties={"READER_ENABLED": enabled(True), "READER_BINARY": enabled("read-it")},
    required_binaries=[
        needs("{READER_BINARY}", "env,apt,uv", overrides={"uv": {"install_root": "{LIB_DIR}/r", "install_args": ["read==1", "--no-deps"]}}),
        needs("../escape", "npm"),
    ],
)
plugin("second", required_binaries=[needs("bus", "pnpm", overrides={"pnpm": {"install_args": ["bus@2.5.79", "--min-release-age=0"]}})])

found = {one.name: one for one in library.requirements()}
assert list(found) == ["node", "bus", "wget", "read-it"], list(found)
assert found["node"].least == "24.22.1"
assert found["bus"].packages == ["bus@2.5.79"] and found["bus"].plugins == ["chrome", "second"], found["bus"]
assert found["read-it"].options == ["--no-deps"] and found["read-it"].root == top / "lib/r", found["read-it"]

(top / "index").mkdir()
(top / "index/on_Snapshot__91_index.py").write_text('raise RuntimeError("x-client not installed. Run: pip install x-client")\n')
assert library.named_modules() == {"x-client": {"index"}}, library.named_modules()

# What hooks import, at the top, in functions, or through a module of theirs: installed, or named.
(top / "lazy").mkdir()
(top / "lazy/sibling.py").write_text("")
(top / "lazy/on_Snapshot__02_lazy.py").write_text(
    "import os\nimport sibling\ndef later():\n    import absent_one.part\n"
    "try:\n    import optional_one\nexcept ImportError:\n    pass\n"
)
(top / "lazy/between.py").write_text("import absent_two\n")
(top / "lazy/on_Snapshot__03_deep.py").write_text("import between\nprint('usage')\n")
assert library.missing_imports() == {"absent_one": {"lazy"}}, library.missing_imports()
asked = []


def install_sibling(name):
    asked.append(name)
    if name != "absent_one":
        (top / "lazy" / f"{name}.py").write_text("")
        return True, ""
    return False, "ERROR: No matching distribution found for absent_one"


library.install_module = install_sibling
library.start_hooks()
assert asked == ["absent_one", "absent_two"], asked
assert len(library.problems) == 1 and "absent_one is not installed: No match" in library.problems[0], library.problems
library.problems.clear()


def source(has, message):
    """A stand-in for pip or npm that has only some packages."""

    def install(words):
        lacks = [word for word in words if word not in has]
        return (False, message.format(lacks[0])) if lacks else (True, "")

    return install


NPM = "npm error code ETARGET\nnpm error notarget No matching version found for {}.\nnpm error A complete log"
PIP = "ERROR: Could not find a version\nERROR: No matching distribution found for {}\n"
for has, message, alternatives, packages, expected in [
    (["bus@2", "x@1.0.0"], NPM, library.same_major, ["bus@2.5.79", "x@1.0.0"], {"bus@2.5.79": "bus@2", "x@1.0.0": "x@1.0.0"}),
    (["@a/b"], NPM, library.same_major, ["@a/b@^3.1.2", "gone"], {"@a/b@^3.1.2": "@a/b", "gone": None}),
    (["certifi"], PIP, library.without_version, ["certifi>=2026.10.19"], {"certifi>=2026.10.19": "certifi"}),
    ([], "npm error An unknown git error occurred {}", library.same_major, ["x@1.0.0"], None),
]:
    installed, output = library.install_available(source(has, message), packages, alternatives)
    assert installed == expected, (packages, installed)
assert library.reason(output) == "An unknown git error occurred x@1.0.0", library.reason(output)

library.note(found["bus"], "bus@2.5.79 is not available, using 2.5.56")
assert library.problems == ["bus@2.5.79 is not available, using 2.5.56 (for chrome, second)"], library.problems

program = top / "program"
program.write_text("#!/bin/sh\n: >$0.settings\n")
program.chmod(0o755)
library.start_once(program)
assert (top / "program.settings").exists(), "not started while its directory is writable"
