"""Compilation of the module: the compiler is called directly, for several files at once."""

from __future__ import annotations

import importlib
import os
import re
import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from . import objects as _objects
from .errors import RedirectError
from .progress import Progress
from .sources import MODULE, Compiler, files, sources

__all__ = ["check_headers", "compile_module", "flags"]

# What the compiler needs for one unit, which includes torch's headers.
_BYTES_PER_UNIT = 3 << 29
# Reading these headers takes the compiler longer than a file of ours does, so that several are one unit.
_UNITS = 6
# Lines of a compiler's output that are shown.
_MOST = 40


def flags(torch: Any) -> tuple[str, ...]:
    """Return the options for each file, without folders."""
    cxx11 = int(bool(torch._C._GLIBCXX_USE_CXX11_ABI))
    return (
        "-std=c++20", "-O2", "-fPIC", "-fvisibility=hidden", "-w", "-DAT_PER_OPERATOR_HEADERS",
        f"-D_GLIBCXX_USE_CXX11_ABI={cxx11}", "-DTORCH_API_INCLUDE_EXTENSION_H", f"-DTORCH_EXTENSION_NAME={MODULE}",
    )  # fmt: skip


def check_headers() -> None:
    """Raise if the headers of this Python are missing.

    Raises
    ------
    RedirectError
        With the package that has them.
    """
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        raise RedirectError(
            f"the module for torch cannot be built: there is no Python.h in {include}; install the headers of this "
            "Python (Debian, Ubuntu: `apt install python3-dev`), or a ready-made module: `pip install halstream-torch`"
        )


def compile_module(torch: Any, compiler: Compiler, include: Path, work: Path, progress: Progress) -> Path:
    """Compile all sources in a folder and link them.

    Parameters
    ----------
    torch : module
    compiler : Compiler
    include : Path
        Folder of ``halstream.h``.
    work : Path
        An empty folder.
    progress : Progress
        Shown how far the compilation is.

    Notes
    -----
    Several sources are one unit for the compiler, so names that are local to a file are unlike in all of them.

    Who works on the sources names a folder in ``HALSTREAM_TORCH_OBJECTS``: what is compiled is kept there, and
    only units in which something changed are compiled again.

    Returns
    -------
    Path
        Of the extension module, in `work`.

    Raises
    ------
    RedirectError
        With the end of the compiler's output.
    """
    folder = sources()
    extension: Any = importlib.import_module("torch.utils.cpp_extension")
    folders = [folder, include, *extension.include_paths("cpu"), sysconfig.get_paths()["include"]]
    options = [*flags(torch), *(f"-I{path}" for path in folders)]
    kept = _objects.kept([folder, include], [torch.__version__, sys.version, compiler.identity, *flags(torch)])
    units = _units(sorted(folder.glob("*.cpp")), work)
    objects = {unit: unit.with_suffix(".o") for unit in units}
    changed = [unit for unit in units if kept is None or not kept.take(unit, objects[unit])]
    progress.expect(1 + len(changed))
    headers = _headers(folder)
    options += _precompiled([*compiler.command, *options], headers, kept.headers(headers) if kept else work, progress)
    commands = [[*compiler.command, *options, "-c", str(unit), "-o", str(objects[unit])] for unit in changed]
    _run_all(commands, [unit.name for unit in changed], progress)
    if kept is not None:
        for unit in changed:
            kept.put(unit, objects[unit])
    target = work / f"{MODULE}.so"
    libraries = Path(torch.__file__).parent / "lib"
    link = [*compiler.command, "-shared", "-o", str(target), *map(str, objects.values()), f"-L{libraries}"]
    link += [f"-l{name}" for name in ("c10", "torch_cpu", "torch", "torch_python")]
    if sys.platform == "darwin":
        link += ["-undefined", "dynamic_lookup"]
    _run(link, "the linker")
    return target


def _units(files: list[Path], work: Path) -> list[Path]:
    """Write the units: files that include the sources, in turn."""
    units = []
    for number in range(min(_UNITS, len(files))):
        unit = work / f"unit{number}.cpp"
        unit.write_text("".join(f'#include "{path.name}"\n' for path in files[number::_UNITS]))
        units.append(unit)
    return units


def _headers(folder: Path) -> list[str]:
    """Return the headers of torch that the sources include."""
    named: set[str] = set()
    for path in files(folder):
        text = path.read_text()
        if "<torch/csrc/distributed/" not in text:  # few files need them, and they include all operators
            named.update(re.findall(r"(?m)^#include (<(?:ATen|c10|torch)/[^>]+>)", text))
    return sorted(named)


def _precompiled(command: list[str], headers: list[str], place: Path, progress: Progress) -> list[str]:
    """Compile the headers of torch once for all files, if `place` lacks that; return the option that uses them."""
    header = place / "torch_headers.h"
    compiled = Path(f"{header}.gch")  # clang finds a file of this name, too
    use = ["-include", str(header)]
    if compiled.exists():
        progress.done("headers taken as they were compiled before")
        return use
    header.write_text("\n".join(["#include <Python.h>", *(f"#include {name}" for name in headers), ""]))
    new = place / f"new-{os.getpid()}"
    try:
        _run([*command, "-x", "c++-header", str(header), "-o", str(new)], "torch's headers")
    except RedirectError:
        new.unlink(missing_ok=True)
        return []  # every file compiles them itself, and names the error
    new.replace(compiled)
    progress.done("headers compiled")
    return use


def _run_all(commands: Sequence[list[str]], names: Sequence[str], progress: Progress) -> None:
    if not commands:
        return
    with ThreadPoolExecutor(_workers(len(commands))) as pool:
        pending = [pool.submit(_run, command, name) for command, name in zip(commands, names, strict=True)]
        try:
            for count, done in enumerate(as_completed(pending), 1):
                done.result()
                progress.done(f"{count} of {len(commands)} units compiled")
        except BaseException:
            for one in pending:
                one.cancel()
            raise


def _workers(units: int) -> int:
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(units, processors, _available_memory() // _BYTES_PER_UNIT))


def _available_memory() -> int:
    """Return how many bytes programs could get now: free ones, and those that the system could take from its caches."""
    try:
        found = re.search(r"(?m)^MemAvailable: *(\d+) kB$", Path("/proc/meminfo").read_text())
    except OSError:
        found = None
    if found is not None:
        return int(found[1]) << 10
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


def _run(command: list[str], what: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace")
    if done.returncode:
        lines = (done.stdout + done.stderr).strip().splitlines()
        first = next((i for i, line in enumerate(lines) if "error" in line), max(0, len(lines) - _MOST))
        shown = "\n".join(lines[first : first + _MOST])
        raise RedirectError(f"the module for torch could not be built: {what} failed\n{shown}")
