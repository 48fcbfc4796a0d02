"""NVRTC, NVIDIA's compiler as a library: found, called, and its results kept on disk.

It needs no GPU: the architecture to compile for is an argument.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import importlib.util
import json
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from .._compiled import cache_folder
from .._errors import BackendAbsentError, CompileError, InvalidValueError, NotSupportedError

# Version of the cache's file format.
_FORMAT = 2

# Newest first. The PyPI packages of CUDA 13 share one folder, those of 12 have one each.
_MAJORS = (13, 12)
_FOLDERS = ("cu13/lib", "cuda_nvrtc/lib")
_HEADERS = ("cu13/include", "cuda_runtime/include", "cuda_cccl/include")
_ROOTS = ("CUDA_PATH", "CUDA_HOME")

# Options that include files whose contents are not part of the source.
_INCLUDES = re.compile(r"-I|--include-path|-include|--pre-include")

_COMPILATION = 6  # the program has errors; the log names them


class Compiled(NamedTuple):
    """A program for one architecture."""

    code: bytes  #: PTX that ends with NUL, or a cubin
    entry: str  #: the kernel's name in it
    architecture: str
    log: str  #: the compiler's warnings; empty if it comes from the cache


class Program(NamedTuple):
    """A compiled source with any number of kernels."""

    code: bytes  #: PTX that ends with NUL, or a cubin
    names: dict[str, str]  #: the names in it of the names that were asked for
    log: str  #: the compiler's warnings; empty if it comes from the cache


def compile_source(source: str, name: str, architecture: str, options: Sequence[str] = (), driver: int = 0) -> Compiled:
    """Compile CUDA C++ for one kernel: a function's name, or an instance of a template, ``"scale<float>"``.

    The parameters and errors are those of `compile_program`.
    """
    made = compile_program(source, (name,), architecture, options, driver, title=f"kernel {name}")
    return Compiled(made.code, made.names[name], architecture, made.log)


def compile_program(
    source: str,
    names: Sequence[str],
    architecture: str,
    options: Sequence[str] = (),
    driver: int = 0,
    *,
    title: str,
    headers: Sequence[Path] = (),
    fresh: bool = False,
) -> Program:
    """Compile CUDA C++, or take the result from the cache.

    Parameters
    ----------
    source : str
    names : sequence of str
        Kernels and variables whose names in the result are wanted, such as
        instances of templates; what is ``extern "C"`` has the same name there.
    architecture : str
        ``'compute_80'`` for PTX, ``'sm_80'`` for a cubin.
    options : sequence of str
        Further options of NVRTC. With includes the cache is left out, as their
        contents may change.
    driver : int, default 0
        Major version of the CUDA driver that is to load the result, 0 for any;
        see `library`.
    title : str
        What errors call the program.
    headers : sequence of Path
        Folders of installed packages whose headers the source includes.
    fresh : bool, default False
        Compile in any case, for the compiler's words.

    Raises
    ------
    CompileError
        With the compiler's log.
    BackendAbsentError
        If NVRTC is not installed.
    """
    if not re.fullmatch(r"(compute|sm)_\d+[af]?", architecture):
        raise InvalidValueError(f"{architecture!r} is no architecture; say for example 'compute_80' or 'sm_80'")
    given = (f"--gpu-architecture={architecture}", *options)
    if not any(option.startswith(("--std", "-std")) for option in options):
        given += ("--std=c++17",)
    path = None
    if not any(_INCLUDES.match(option) for option in options):
        # An installer writes a package's files anew when it brings another version.
        stamps = [(str(folder), max(p.stat().st_mtime_ns for p in (folder, *folder.glob("*/*")))) for folder in headers]
        parts = (_FORMAT, version(driver), source, *names, given, stamps)
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        path = cache_folder() / "kernels" / key[:2] / key
        found = None if fresh else _load(path)
        if found is not None:
            return found
    given += tuple(f"-I{folder}" for folder in headers)
    made = _compile(source, names, architecture, given, library(driver), title)
    if path is not None:
        _store(path, made)
    return made


# -- the cache --------------------------------------------------------------


def _load(path: Path) -> Program | None:
    try:
        head, _, code = path.read_bytes().partition(b"\n")
        names, digest = json.loads(head)
    except (OSError, ValueError):
        return None
    if hashlib.sha256(code).hexdigest() != digest:
        return None  # cut short or changed: compile again
    return Program(code, names, "")


def _store(path: Path, made: Program) -> None:
    """Write a result atomically: a concurrent reader finds nothing or all of it."""
    head = json.dumps([made.names, hashlib.sha256(made.code).hexdigest()]).encode()
    temporary = ""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
        with os.fdopen(descriptor, "wb") as file:
            file.write(head + b"\n" + made.code)
        os.replace(temporary, path)
    except OSError:
        # A cache that cannot be written costs time, nothing else.
        if temporary and os.path.exists(temporary):
            os.unlink(temporary)


# -- the library ------------------------------------------------------------


def majors_for(driver: int) -> list[int]:
    """Return the major versions of NVRTC in the order in which to look for them.

    A driver loads what a compiler of its own major version or an older one has made. With a
    newer one only some programs load; without a driver, 0, the newest compiler is the best.
    """
    return sorted(_MAJORS, key=lambda major: (bool(driver) and major > driver, -major))


def _packages() -> Sequence[str]:
    """Return the folders of NVIDIA's PyPI packages."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    return (spec.submodule_search_locations or ()) if spec else ()


def _candidates(soname: str) -> Iterator[str]:
    """Yield what to hand to the loader for a version: the PyPI packages, the system, a toolkit."""
    for place in _packages():
        for folder in _FOLDERS:
            # By its path it finds its builtins, which lie beside it.
            path = Path(place, folder, soname)
            if path.exists():
                yield str(path)
    yield soname
    for variable in _ROOTS:
        root = os.environ.get(variable)
        for folder in ("lib64", "lib") if root else ():
            yield str(Path(root or "", folder, soname))


@functools.cache
def library(driver: int = 0) -> Any:
    """Return NVRTC, loaded once, in the version that suits a driver best; see `majors_for`.

    Parameters
    ----------
    driver : int, default 0
        The major version of the CUDA driver; 0 if there is none.

    Raises
    ------
    BackendAbsentError
        If NVRTC is not installed.
    """
    reasons = []
    for major in majors_for(driver):
        for name in _candidates(f"libnvrtc.so.{major}"):
            try:
                found = ctypes.CDLL(name)
            except OSError as exc:
                reasons.append(str(exc))
                continue
            found.nvrtcGetErrorString.restype = ctypes.c_char_p
            return found
    raise BackendAbsentError(
        f"NVRTC, which compiles CUDA sources, is not installed; say pip install 'halstream[cuda]' ({reasons[0]})",
        operation="compile",
    )


def toolkit_headers() -> list[Path]:
    """Return the folders of CUDA's own headers: of the PyPI packages, or of a toolkit."""
    places = [Path(place) for place in _packages()]
    folders = [place / folder for place in places for folder in _HEADERS]
    folders += [Path(root, "include") for variable in _ROOTS if (root := os.environ.get(variable))]
    return [folder for folder in folders if folder.is_dir()]


def _check(nvrtc: Any, status: int, doing: str) -> None:
    if status:
        text = nvrtc.nvrtcGetErrorString(status).decode()
        raise CompileError(f"{doing}: {text} ({status})", code=status, operation="compile")


@functools.cache
def version(driver: int = 0) -> tuple[int, int]:
    """Return the version of the NVRTC for a driver."""
    nvrtc, major, minor = library(driver), ctypes.c_int(), ctypes.c_int()
    _check(nvrtc, nvrtc.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "NVRTC version")
    return major.value, minor.value


@functools.cache
def supported(driver: int = 0) -> tuple[int, ...]:
    """Return the architectures that the NVRTC for a driver knows, such as 80, from the oldest."""
    nvrtc, count = library(driver), ctypes.c_int()
    _check(nvrtc, nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)), "NVRTC architectures")
    numbers = (ctypes.c_int * count.value)()
    _check(nvrtc, nvrtc.nvrtcGetSupportedArchs(numbers), "NVRTC architectures")
    return tuple(sorted(numbers))


def target(major: int, minor: int, driver: int = 0) -> str:
    """Return what to compile for, given the compute capability of a device.

    A cubin where NVRTC knows the device; else PTX of the newest architecture
    before it, which the driver finishes.
    """
    device = major * 10 + minor
    return f"sm_{device}" if device in supported(driver) else virtual(major, minor, driver)


def virtual(major: int, minor: int, driver: int = 0) -> str:
    """Return the newest architecture whose PTX a device of a compute capability can run.

    Raises
    ------
    NotSupportedError
        If the device is older than all that NVRTC knows.
    """
    known = supported(driver)
    older = [number for number in known if number <= major * 10 + minor]
    if not older:
        raise NotSupportedError(
            f"NVRTC {'.'.join(map(str, version(driver)))} knows no architecture as old as "
            f"{major}.{minor}; its oldest is {known[0]}",
            operation="compile",
        )
    return f"compute_{older[-1]}"


def _compile(
    source: str, names: Sequence[str], architecture: str, options: Sequence[str], nvrtc: Any, title: str
) -> Program:
    program = ctypes.c_void_p()
    if "\0" in source or any("\0" in name for name in names):
        raise InvalidValueError("a CUDA source and a kernel's name have no NUL characters")
    file = re.sub(r"\W", "_", title.partition(" ")[2]).encode()
    text = source.encode()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, file + b".cu", 0, None, None)
    _check(nvrtc, made, f"compile {title}")
    try:
        for name in names:
            _check(nvrtc, nvrtc.nvrtcAddNameExpression(program, name.encode()), f"compile {title}")
        words = [option.encode() for option in options]
        status = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        log = _text(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if status:
            reason = nvrtc.nvrtcGetErrorString(status).decode()
            what = "does not compile" if status == _COMPILATION else f"cannot be compiled: {reason}"
            raise CompileError(
                f"{title} {what} for {architecture}\n{log}",
                code=status,
                operation="compile",
                log=log,
            )
        lowered = {}
        for name in names:
            found = ctypes.c_char_p()
            _check(nvrtc, nvrtc.nvrtcGetLoweredName(program, name.encode(), ctypes.byref(found)), f"name of {name}")
            lowered[name] = (found.value or b"").decode()
        code = _text(nvrtc, program, "CUBIN" if architecture.startswith("sm_") else "PTX")
        return Program(code, lowered, log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
    buffer = ctypes.create_string_buffer(max(1, size.value))
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer), what)
    return buffer.raw[: size.value]
