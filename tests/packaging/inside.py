"""Compares the list of crates of an extracted package with the lists that cargo-auditable embedded in its programs.

usage: inside.py ROOT VENDOR      VENDOR: the directory of the crates that it was built from
"""

import gzip
import json
import subprocess
import sys
import tempfile
import tomllib
import zlib

PROGRAMS = ["usr/bin/archivist", "usr/lib/archivist/archivist-orchestrator", "usr/lib/archivist/archivist-hook-exec",
            "usr/lib/archivist/archivist-fleet", "usr/lib/archivist/archivist-pools", "usr/lib/archivist/archivist-store", "usr/lib/archivist/archivist-search",
            "usr/lib/systemd/system-generators/archivist-generator"]
root, vendor = sys.argv[1:]


def embedded(program):
    """Packages of a program. `kind` is "build" for macros and build scripts, or else absent."""
    with tempfile.NamedTemporaryFile() as section:
        command = ["objcopy", "-O", "binary", "--only-section=.dep-v0", "--set-section-flags", ".dep-v0=alloc"]
        subprocess.run([*command, f"{root}/{program}", section.name], check=True)
        return json.loads(zlib.decompress(section.read()))["packages"]


def key_of(package):
    return package["name"], package["version"]


def is_macro(package):
    for directory in (package["name"], f"{package['name']}-{package['version']}"):
        try:
            with open(f"{vendor}/{directory}/Cargo.toml", "rb") as file:
                manifest = tomllib.load(file)
        except FileNotFoundError:
            continue
        if manifest["package"]["version"] == package["version"]:
            return manifest.get("lib", {}).get("proc-macro", False)
    return False


bom = json.load(gzip.open(f"{root}/usr/share/doc/archivist/archivist.cdx.json.gz"))
listed = [bom["metadata"]["component"], *bom["components"]]
scopes = {key_of(part): part["scope"] for part in listed if part["purl"].startswith("pkg:cargo/")}
faults, runtime = [], set()
for program in PROGRAMS:
    packages = embedded(program)
    for package in packages:
        scope = scopes.get(key_of(package), "absent")
        if scope == "absent":
            faults.append(f"{program} contains {key_of(package)}, which is not listed")
        elif package.get("kind", "runtime") == "runtime":
            runtime.add(key_of(package))
        # cargo-auditable takes a macro for code of the program if its crate has tests, too.
        for other in (packages[index] for index in package.get("dependencies", [])):
            embedded_as_runtime = other.get("kind", "runtime") == "runtime"
            if scope == "required" and embedded_as_runtime and scopes.get(key_of(other)) == "excluded" and not is_macro(other):
                faults.append(f"{program} contains {key_of(other)}, which is listed as a build tool")
faults += [f"{key} is listed, but in no program" for key, scope in scopes.items() if scope == "required" and key not in runtime]
print(len(runtime), "crates are embedded,", len(scopes), "are listed")
sys.exit("\n".join(faults) or None)
