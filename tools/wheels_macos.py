"""Cross-compiles wheels for macOS into dist/wheels, and checks them as far as that is possible elsewhere.

Usage: python tools/wheels_macos.py [arm64|x86_64 ...]

zig (the PyPI package `ziglang`) is the C compiler and brings what C programs need of macOS but for one framework
and one library, which Go names in its commands for the linker and the extension calls nothing of: their lists of
symbols are written here, empty. Nothing is run: what a wheel does on a Mac is not known.

Exit code 1 when a build or a check fails.
"""

from __future__ import annotations

import os
import shlex
import struct
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import NamedTuple

import wheels

STUBS = wheels.FOLDER / "macos"
OLDEST = (11, 0)
TARGETS = {
    "arm64": wheels.Target("darwin", "arm64", "aarch64-macos.11.0", "macosx_11_0_arm64"),
    "x86_64": wheels.Target("darwin", "amd64", "x86_64-macos.11.0", "macosx_11_0_x86_64"),
}
#: Where the linker looks -> what the file that is loaded is called.
MISSING = {
    "CoreFoundation.framework/CoreFoundation.tbd": "/System/Library/Frameworks/CoreFoundation.framework/Versions/A/"
    "CoreFoundation",
    "libresolv.tbd": "/usr/lib/libresolv.9.dylib",
}
TBD = """--- !tapi-tbd
tbd-version:     4
targets:         [ x86_64-macos, arm64-macos ]
install-name:    '{}'
...
"""
CPU = {"arm64": 0x0100000C, "amd64": 0x01000007}
MAGIC, SYMTAB, LOAD_DYLIB, ID_DYLIB, BUILD_VERSION, SIGNATURE = 0xFEEDFACF, 0x2, 0xC, 0xD, 0x32, 0x1D


class Library(NamedTuple):
    """What the head of a Mach-O file says."""

    cpu: int
    name: str  #: by which it would be linked
    needs: list[str]
    oldest: tuple[int, int]  #: version of macOS
    signed: bool
    defined: set[str]


def compiler(target: wheels.Target) -> Path:
    """Write the program that is the C compiler for a target, and what zig lacks for its linker."""
    for name, loaded in MISSING.items():
        (STUBS / name).parent.mkdir(parents=True, exist_ok=True)
        (STUBS / name).write_text(TBD.format(loaded))
    path = wheels.FOLDER / f"cc-{target.tag}"
    python, stubs = shlex.quote(wheels.tool("python")), shlex.quote(str(STUBS))
    options = f"-target {target.zig} -fno-sanitize=undefined -F{stubs} -L{stubs}"
    path.write_text(f'#!/bin/sh\nexec {python} -m ziglang cc {options} "$@"\n')
    path.chmod(0o755)
    return path


def text(data: bytes, at: int) -> str:
    """Return the text that ends with a zero byte."""
    return data[at : data.index(b"\0", at)].decode()


def read(data: bytes) -> Library:
    """Read the head of a Mach-O file for one processor of 64 bits."""
    magic, cpu, _, _, count = struct.unpack_from("<5I", data)
    if magic != MAGIC:
        raise ValueError("it is no Mach-O file of 64 bits")
    found = Library(cpu, "", [], (0, 0), False, set())
    at = 32
    for _ in range(count):
        kind, size = struct.unpack_from("<2I", data, at)
        kind &= 0x7FFFFFFF
        if kind in (LOAD_DYLIB, ID_DYLIB):
            name = text(data, at + struct.unpack_from("<I", data, at + 8)[0])
            found = found._replace(name=name) if kind == ID_DYLIB else found._replace(needs=[*found.needs, name])
        elif kind == BUILD_VERSION:
            version = struct.unpack_from("<I", data, at + 12)[0]
            found = found._replace(oldest=(version >> 16, version >> 8 & 0xFF))
        elif kind == SIGNATURE:
            found = found._replace(signed=True)
        elif kind == SYMTAB:
            first, symbols, names, _ = struct.unpack_from("<4I", data, at + 8)
            for i in range(symbols):
                name_at, flags = struct.unpack_from("<IB", data, first + 16 * i)
                if flags & 0x0F == 0x0F and not flags & 0xE0:  # external, in a section, and no debugger's
                    found.defined.add(text(data, names + name_at))
        at += size
    return found


def check(wheel: Path, target: wheels.Target) -> list[str]:
    """Return what is wrong with a wheel: processor, macOS, libraries, signature, entry points."""
    problems, seen = [], 0
    known = {"/usr/lib/libSystem.B.dylib", *MISSING.values()}
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if not name.endswith(".so"):
                continue
            seen += 1
            library = read(archive.read(name))
            entry = f"_PyInit_{Path(name).name.partition('.')[0]}"
            wrong = {
                "is for another processor": library.cpu != CPU[target.goarch],
                f"needs macOS {library.oldest}": library.oldest > OLDEST,
                f"needs {set(library.needs) - known}": set(library.needs) - known,
                f"has the name {library.name} of the build": "/" in library.name,
                # Apple's processors run nothing else; the linker's own signature is enough.
                "is not signed": target.goarch == "arm64" and not library.signed,
                f"does not have {entry}": entry not in library.defined,
            }
            problems += [f"{wheel.name}: {name} {problem}" for problem, is_so in wrong.items() if is_so]
    if seen != 2:
        problems.append(f"{wheel.name}: {seen} libraries, not 2")
    audit = subprocess.run([wheels.tool("abi3audit"), "--strict", str(wheel)], capture_output=True, text=True)
    if audit.returncode:
        problems.append(f"{wheel.name}: abi3audit: {audit.stdout}{audit.stderr}")
    return problems


def main(names: list[str]) -> int:
    wheels.FOLDER.mkdir(parents=True, exist_ok=True)
    problems = []
    for name in names or TARGETS:
        target = TARGETS[name]
        wheel = wheels.build(f"macos-{name}", target, compiler(target))
        found = check(wheel, target)
        problems += found
        print(f"{wheel.name}: not run" + ("" if found else ", and nothing is wrong as far as can be seen here"))
    print(*problems, sep=os.linesep, end=os.linesep if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
