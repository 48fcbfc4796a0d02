"""The report of `halstream doctor`: what is installed, what of it works, and what to do where it does not.

Nothing of another package is imported here: versions are read from metadata, and
whether a package can be imported is tried in a child process, which may end in any way.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

from .. import __version__
from .._checks.suppress import from_environment
from .._compiled import cache_folder
from .._errors import InvalidValueError
from .._lint import data

__all__ = ["BACKENDS", "Check", "gather"]

#: The backends that the commands try.
BACKENDS = ("host", "cuda", "ascend")

#: The distributions of each mirrored package, the first that is installed counts.
_DISTRIBUTIONS = {
    "torch": ("torch",),
    "paddle": ("paddlepaddle", "paddlepaddle-gpu"),
    "mindspore": ("mindspore",),
    "cupy": ("cupy-cuda12x", "cupy-cuda13x", "cupy-cuda11x", "cupy"),
    "acl": (),
}
_SECONDS = 60
# A folder of the program may have a package's name. The working folder stays: variables may have paths from it.
_NOT_HERE = "import sys; sys.path[:] = filter(None, sys.path)\n"


class Check(NamedTuple):
    """One line of the report."""

    name: str
    state: str  #: ok, missing (not needed), differs, or broken
    text: str

    @property
    def broken(self) -> bool:
        """Whether something that is needed does not work."""
        return self.state == "broken"


def gather(imports: bool = True) -> list[Check]:
    """Return the checks; without `imports` no other package is tried in a child process."""
    checks = [Check("halstream", "ok", f"{__version__} in {os.path.dirname(os.path.dirname(__file__))}"), _python()]
    checks.append(_numpy())
    checks += [*_backends(), *_variables()]
    checks += [_dialect(name, imports) for name in _DISTRIBUTIONS]
    checks += [_tool("go", "Go compiler", "only needed to install halstream from source", "version")]
    checks += [_compiler(), _nvrtc(), *_extras(), *_limits(), _cache()]
    return checks


def _python() -> Check:
    text = f"{platform.python_implementation()} {platform.python_version()}, {platform.platform()}"
    if platform.python_implementation() != "CPython" or sys.version_info < (3, 10):
        return Check("python", "broken", f"{text}: halstream needs CPython from 3.10 on")
    return Check("python", "ok", text)


def _installed(*names: str) -> str:
    """Return the version of the first distribution that is installed, '' for none."""
    for name in names:
        try:
            return f"{name} {importlib.metadata.version(name)}"
        except (importlib.metadata.PackageNotFoundError, TypeError, KeyError, ValueError):
            continue  # damaged metadata has no version
    return ""


def _child(code: str) -> str:
    """Run code in a fresh process and return the last line that it prints, or why it failed with a '!' before."""
    try:
        done = subprocess.run(
            [sys.executable, "-c", _NOT_HERE + code],
            capture_output=True, text=True, errors="replace", timeout=_SECONDS, stdin=subprocess.DEVNULL,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"!its import has not ended within {_SECONDS} s"
    except OSError as exc:
        return f"!no process could be started: {exc}"
    if done.returncode < 0:
        return f"!its import ended with signal {-done.returncode}"
    if done.returncode:
        return "!" + (_failure(done.stderr) or f"its import ended with code {done.returncode}")[:200]
    return (done.stdout.strip().splitlines() or [""])[-1]


def _failure(errors: str) -> str:
    """Return the first line of the exception that ended a process, or the last line that it wrote."""
    lines = errors.strip().split("\n")
    frames = [number for number, line in enumerate(lines) if line.startswith('  File "')]
    if frames:
        # A source line that is no text, of a file that is not Python, may look like several lines.
        raised = [line for line in lines[frames[-1] :] if re.match(r"[A-Za-z_][\w.]*(: |$)", line)]
        lines = raised[:1] or lines
    return lines[-1] if lines else ""


def _numpy() -> Check:
    found = _child("import numpy; print(numpy.__version__)")
    if found.startswith("!"):
        return Check("numpy", "broken", f"cannot be imported: {found[1:]}; say pip install numpy")
    return Check("numpy", "ok", found)


def _backends() -> list[Check]:
    code = (
        "import halstream\n"
        "try: print('+' + halstream.use_backend({0!r}) + f': {{halstream.device_count()}} device(s)')\n"
        "except halstream.HalError as exc: print('-' + ' '.join(str(exc).split()))"
    )
    checks = []
    for name in BACKENDS:
        found = _child(code.format(name))
        if found.startswith("+"):
            checks.append(Check(f"backend {name}", "ok", found.partition(": ")[2]))
        else:
            state = "broken" if name == "host" else "missing"
            checks.append(Check(f"backend {name}", state, f"not usable: {found.lstrip('!-')}"))
    return checks


def _variables() -> list[Check]:
    """Check the variables that are set and are read later than a backend is opened, or choose it."""
    checks = []
    if os.environ.get("HALSTREAM_BACKEND"):
        checks.append(_asked("HALSTREAM_BACKEND", "print('+' + halstream.backend())"))
    if os.environ.get("HALSTREAM_STALL_S"):
        # Only a schedule reads it, and only the host device is sure to have those.
        run = "halstream.use_backend('host')\n    with halstream.testing.schedule('fifo'): print('+')"
        checks.append(_asked("HALSTREAM_STALL_S", run))
    if path := os.environ.get("HALSTREAM_SUPPRESSIONS"):
        try:
            checks.append(Check("HALSTREAM_SUPPRESSIONS", "ok", f"{len(from_environment())} rule(s) in {path}"))
        except InvalidValueError as exc:
            checks.append(Check("HALSTREAM_SUPPRESSIONS", "broken", str(exc)))
    return checks


def _asked(variable: str, code: str) -> Check:
    """Check a variable with code that prints a '+', and what there is to say, if it is right."""
    found = _child(
        f"import halstream, halstream.testing\ntry:\n    {code}\n"
        "except halstream.HalError as exc: print('-' + ' '.join(str(exc).split()))"
    )
    if found.startswith("+"):
        return Check(variable, "ok", found[1:] or os.environ[variable])
    return Check(variable, "broken", found.lstrip("!-"))


def _dialect(name: str, imports: bool) -> Check:
    """Compare the package that a dialect mirrors with the version that it follows."""
    label = f"dialect {name}"
    follows = f"the dialect follows {data.source(name)}"
    found = _installed(*_DISTRIBUTIONS[name])
    try:
        spec = importlib.util.find_spec(name)
        there = bool(found) or (spec is not None and spec.origin is not None)  # no mere folder
    except (ImportError, ValueError, AttributeError):
        there = True  # something has that name
    if not there:
        return Check(label, "ok", f"{follows}; the package itself is not installed, and not needed")
    if imports and (tried := _child(f"import {name}")).startswith("!"):
        what = found or name
        return Check(label, "differs", f"{what} is installed and cannot be imported: {tried[1:]}; {follows}")
    if not found:
        return Check(label, "ok", f"{name} is importable, without a version; {follows}")
    version = found.split()[1].partition("+")[0]
    if version.split(".")[:2] != data.version(name).split(".")[:2]:
        return Check(label, "differs", f"{found} is installed, and {follows}: names and arguments may differ")
    return Check(label, "ok", f"{found} is installed; {follows}")


def _tool(program: str, title: str, use: str, *ask: str) -> Check:
    path = shutil.which(program)
    if path is None:
        return Check(title, "missing", f"none on PATH; {use}")
    try:
        done = subprocess.run([path, *ask], capture_output=True, text=True, errors="replace", timeout=_SECONDS)
        first = (done.stdout.strip().splitlines() or [path])[0]
    except (OSError, subprocess.TimeoutExpired) as exc:
        return Check(title, "differs", f"{path} does not answer: {exc}")
    return Check(title, "ok", first)


def _compiler() -> Check:
    program = next((p for p in (os.environ.get("CXX", ""), "c++", "g++", "clang++") if p and shutil.which(p)), "c++")
    needed = "only needed for the real torch and the real Paddle (run --torch, --paddle)"
    return _tool(program, "C++ compiler", needed, "--version")


def _nvrtc() -> Check:
    found = _installed("nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc", "nvidia-cuda-nvrtc-cu13")
    if not found:
        return Check(
            "NVRTC", "missing", "not installed; kernels from CUDA source need it: pip install 'halstream[cuda]'"
        )
    return Check("NVRTC", "ok", found)


def _extras() -> list[Check]:
    return [
        Check(f"extra {extra}", "ok" if found else "missing", found or f"say pip install 'halstream[{extra}]'")
        for extra, package in (("cli", "perfetto"), ("plot", "matplotlib"), ("test", "pytest"))
        for found in [_installed(package)]
    ]


def _limits() -> list[Check]:
    try:
        import resource  # there is none on Windows
    except ImportError:
        return []
    checks = []
    for title, number, least, unit, flag in (
        ("address space", resource.RLIMIT_AS, 1 << 30, "bytes", "-v"),
        ("threads", resource.RLIMIT_NPROC, 64, "", "-u"),
        ("open files", resource.RLIMIT_NOFILE, 64, "", "-n"),
    ):
        limit = resource.getrlimit(number)[0]
        text = "no limit" if limit == resource.RLIM_INFINITY else f"{limit} {unit}".strip()
        low = limit != resource.RLIM_INFINITY and limit < least
        if low:
            text += f": the runtime needs {least} to start; raise it (ulimit {flag})"
        checks.append(Check(f"limit of {title}", "broken" if low else "ok", text))
    return checks


def _cache() -> Check:
    try:
        where = folder = cache_folder()
    except RuntimeError as exc:  # there is no home folder
        return Check("cache folder", "differs", f"{exc}; set HALSTREAM_CACHE_DIR")
    while not where.exists() and where.parent != where:
        where = where.parent
    if not where.is_dir() or not os.access(where, os.W_OK):
        return Check(
            "cache folder", "differs", f"{folder} cannot be written: kernels are compiled anew in each process"
        )
    return Check("cache folder", "ok", str(folder))
