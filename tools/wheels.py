"""Builds the wheels that PyPI takes, checks each, and calls those that can run here.

Usage: python tools/wheels.py [TARGET ...]

Targets are the keys of `TARGETS`; without any, all of them. zig (the PyPI package
`ziglang`) is the C compiler, so that one machine builds for an old glibc and for
another processor. The wheels land in dist/wheels. Each must be consistent with its
tag (auditwheel) and use the stable interface only (abi3audit). The one for this
processor is then installed for each CPython that is found (tools/smoke.py), and
the one for arm64 is run under qemu (tools/wheels_arm64.py).

Exit code 1 when a build, a check or a run fails. What could not be tried is named.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import time
import zipfile
from pathlib import Path
from typing import NamedTuple

import smoke
import wheels_arm64

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "build" / "wheels"
DIST = ROOT / "dist" / "wheels"
#: The compiler, what checks its output, and what makes it smaller.
TOOLS = ["ziglang==0.17.1", "auditwheel==6.8.2", "abi3audit==0.0.26", "zopfli==0.4.3"]
MIB = 1 << 20


class Target(NamedTuple):
    goos: str
    goarch: str
    zig: str
    tag: str


#: glibc 2.28 is that of RHEL 8, Debian 10 and Ubuntu 20.04; `memfd_create` is not in 2.17.
TARGETS = {
    "x86_64": Target("linux", "amd64", "x86_64-linux-gnu.2.28", "manylinux_2_28_x86_64"),
    "aarch64": Target("linux", "arm64", "aarch64-linux-gnu.2.28", "manylinux_2_28_aarch64"),
}


def tool(name: str) -> str:
    """Return the path of a program of the environment of the tools, which is made at the first call."""
    inside = FOLDER / "tools" / "bin"
    stamp = FOLDER / "tools" / "installed"
    if not stamp.exists() or stamp.read_text() != repr(TOOLS):
        subprocess.run([sys.executable, "-m", "venv", "--clear", FOLDER / "tools"], check=True)
        subprocess.run([inside / "python", "-m", "pip", "install", "--quiet", *TOOLS], check=True)
        stamp.write_text(repr(TOOLS))
    return str(inside / name)


def compiler(target: Target) -> Path:
    """Write the program that is the C compiler for a target; cgo wants one without spaces in its path."""
    path = FOLDER / f"cc-{target.tag}"
    # No sanitizer's traps, which zig puts in by default, and no symbols of the C half.
    options = f"-target {target.zig} -fno-sanitize=undefined -Wl,-s"
    path.write_text(f'#!/bin/sh\nexec {shlex.quote(tool("python"))} -m ziglang cc {options} "$@"\n')
    path.chmod(0o755)
    return path


def build(name: str, target: Target, cc: Path) -> Path:
    """Build one wheel with a C compiler into dist/wheels and return its path."""
    base, out = FOLDER / name, FOLDER / f"{name}-out"
    for folder in (base, out):  # setuptools would pack files long deleted
        shutil.rmtree(folder, ignore_errors=True)
    env = {
        **os.environ,
        "CC": str(cc),
        "GOOS": target.goos,
        "GOARCH": target.goarch,
        "HALSTREAM_WORK": f"_go-{name}",
    }
    begin = time.monotonic()
    command = [sys.executable, "setup.py", "--quiet", "build", "--build-base", base, "bdist_wheel"]
    command += ["--bdist-dir", base / "wheel", "--dist-dir", out, "--plat-name", target.tag]
    subprocess.run(command, cwd=ROOT, env=env, check=True)
    (built,) = out.glob("*.whl")
    DIST.mkdir(parents=True, exist_ok=True)
    wheel = DIST / built.name
    subprocess.run([tool("python"), ROOT / "tools" / "wheels_smaller.py", built, wheel], check=True)
    print(f"{wheel.name}: {wheel.stat().st_size / MIB:.2f} MiB, built in {time.monotonic() - begin:.0f} s", flush=True)
    return wheel


def check(wheel: Path, target: Target) -> list[str]:
    """Return what is wrong with a wheel: its tag, the interface that it uses, the processor of its files."""
    problems = []
    shown = subprocess.run([tool("auditwheel"), "show", str(wheel)], capture_output=True, text=True)
    text = " ".join((shown.stdout + shown.stderr).split())
    found = re.search(r'consistent with the following platform tag: "manylinux_(\d+)_(\d+)_(\w+)"', text)
    allowed = re.fullmatch(r"manylinux_(\d+)_(\d+)_(\w+)", target.tag)
    assert allowed is not None
    if found is None or found[3] != allowed[3]:
        problems.append(f"auditwheel: {text}")
    elif (int(found[1]), int(found[2])) > (int(allowed[1]), int(allowed[2])):
        problems.append(f"auditwheel: it needs glibc {found[1]}.{found[2]}, its tag says {allowed[1]}.{allowed[2]}")
    audit = subprocess.run([tool("abi3audit"), "--strict", str(wheel)], capture_output=True, text=True)
    if audit.returncode:
        problems.append(f"abi3audit: {audit.stdout}{audit.stderr}")
    machine = {"amd64": 62, "arm64": 183}[target.goarch]
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so") and int.from_bytes(archive.read(name)[18:20], "little") != machine:
                problems.append(f"{name} is for another processor")
    return [f"{wheel.name}: {problem}" for problem in problems]


def run(name: str, wheel: Path) -> None:
    """Install a wheel and call it, where that is possible."""
    if TARGETS[name].goarch == {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine()):
        smoke.main(str(wheel))
    elif name == "aarch64":
        wheels_arm64.main(wheel)
    else:
        print(f"{wheel.name}: not run, this is {platform.machine()}")


def main(names: list[str]) -> int:
    FOLDER.mkdir(parents=True, exist_ok=True)
    problems = []
    for name in names or TARGETS:
        target = TARGETS[name]
        wheel = build(name, target, compiler(target))
        found = check(wheel, target)
        problems += found
        if not found:
            print(f"{wheel.name}: auditwheel and abi3audit find nothing", flush=True)
            run(name, wheel)
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
