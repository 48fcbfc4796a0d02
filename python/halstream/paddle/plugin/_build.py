"""Compilation of the two libraries: the plug-in in C, and the operators in C++ against the installed Paddle."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import halstream

from . import _cache, _sources
from ._errors import PluginError
from ._wheel import Wheel

__all__ = ["OPERATORS", "PLUGIN", "operators", "plugin"]

#: Names of the extension modules. Paddle loads every library of the folder in which the first one is.
PLUGIN = "halstream_paddle"
OPERATORS = "halstream_paddle_operators"

#: Part of each key; to be raised when the commands of a build change, so that older results are not used.
_FORMAT = 1
# Lines of a compiler's output that are shown.
_MOST = 40
# Files into which the operators are split.
_PARTS = 2


def plugin() -> Path:
    """Return the plug-in, compiled if there is none.

    Raises
    ------
    PluginError
        If it cannot be; the text says what to install.
    """
    folder = _sources.sources()
    command = _compiler("CC", ("gcc", "clang", "cc"), "a C compiler", "gcc")
    options = [
        "-std=gnu11", "-D_GNU_SOURCE", "-O2", "-fPIC", "-shared", "-fvisibility=hidden", "-Wl,-z,nodelete", "-pthread",
    ]  # fmt: skip

    def make(work: Path) -> Path:
        target = work / f"{PLUGIN}.so"
        units = [str(path) for path in _sources.files(folder) if path.suffix == ".c"]
        _run([*command, *options, *_folders(folder), *units, "-o", str(target)], "the plug-in")
        return target

    return _built(PLUGIN, _key("plugin", _sources.files(folder), [*command, *options]), make)


def operators(wheel: Wheel) -> Path:
    """Return the library of operators for a Paddle, compiled if there is none.

    Raises
    ------
    PluginError
        If it cannot be; the text says what to install.
    """
    folder = _sources.sources() / "operators"
    command = _compiler("CXX", ("g++", "clang++", "c++"), "a C++ compiler", "g++")
    options = [
        "-std=c++17", "-O1", "-fPIC", "-w", "-fvisibility=hidden", "-DPADDLE_WITH_CUSTOM_DEVICE",
        "-DPADDLE_WITH_CUSTOM_KERNEL",
    ]  # fmt: skip
    found = _sources.operators(wheel.include)
    if not found:
        raise PluginError(f"Paddle's headers are not in {wheel.include}; install the wheel again")
    include = [f"-I{wheel.include}", f"-I{wheel.include / 'third_party'}"]

    def make(work: Path) -> Path:
        units = [path for path in _sources.files(folder) if path.suffix == ".cpp"]
        for number, text in enumerate(_sources.translation_units(found, _PARTS)):
            units.append(work / f"operators{number}.cpp")
            units[-1].write_text(text)
        _say(f"building the operators for Paddle {wheel.version}, once; this takes about a minute")
        began = time.monotonic()
        objects = [work / f"{number}.o" for number in range(len(units))]
        commands = [
            [*command, *options, *include, *_folders(folder), "-c", str(unit), "-o", str(made)]
            for unit, made in zip(units, objects, strict=True)
        ]
        with ThreadPoolExecutor(min(4, os.cpu_count() or 1)) as pool:
            list(pool.map(lambda one: _run(one, Path(one[-3]).name), commands))
        target, libraries = work / f"{OPERATORS}.so", wheel.folder / "libs"
        link = [*command, "-shared", "-Wl,-z,nodelete", "-o", str(target), *map(str, objects)]
        _run([*link, f"-L{libraries}", "-lphi_core", "-lcommon"], "the linker")
        _say(f"built in {time.monotonic() - began:.0f} s: {len(found)} operators")
        return target

    # The folder of the wheel is part of the key: another environment may have another build of the same version.
    words = [*command, *options, wheel.version, str(wheel.folder), json.dumps(found)]
    return _built(OPERATORS, _key(f"operators-{wheel.version}", _sources.files(folder), words), make)


def _built(name: str, key: str, make: Callable[[Path], Path]) -> Path:
    found = _cache.find(key, f"{name}.so")
    if found is not None:
        return found
    if sys.platform != "linux":
        raise PluginError("Paddle's plug-ins for devices are for Linux")
    with _cache.locked(key):
        return _cache.find(key, f"{name}.so") or _cache.store(key, make)


def _key(kind: str, files: list[Path], words: list[str]) -> str:
    """Return a name that differs where anything differs that the result depends on."""
    soabi = str(sysconfig.get_config_var("SOABI") or sysconfig.get_platform())
    digest = hashlib.sha256(json.dumps([_FORMAT, halstream.__version__, soabi, *words]).encode())
    for path in [*files, Path(halstream.get_include()) / "halstream.h"]:
        digest.update(f"{path.name}\0".encode() + path.read_bytes())
    return f"{kind.replace('.', '_')}-{digest.hexdigest()[:16]}"


def _compiler(variable: str, names: tuple[str, ...], what: str, package: str) -> list[str]:
    named = os.environ.get(variable, "").split()
    for command in [named] if named else [[name] for name in names]:
        path = shutil.which(command[0])
        if path is not None:
            return [path, *command[1:]]
    raise PluginError(
        f"there is no library for Paddle yet, and {what} ({variable}, {', '.join(names)}) is needed to build it; "
        f"Debian, Ubuntu: `apt install {package}`"
    )


def _folders(folder: Path) -> list[str]:
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise PluginError(
            f"the library for Paddle cannot be built: there is no Python.h in {include}; install the headers of this "
            "Python (Debian, Ubuntu: `apt install python3-dev`)"
        )
    return [f"-I{folder}", f"-I{halstream.get_include()}", f"-I{include}"]


def _say(text: str) -> None:
    print(f"halstream: {text}", file=sys.stderr, flush=True)


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        first = next((i for i, line in enumerate(lines) if "error" in line), max(0, len(lines) - _MOST))
        shown = "\n".join(lines[first : first + _MOST])
        raise PluginError(f"the library for Paddle could not be built: {what} failed\n{shown}")
