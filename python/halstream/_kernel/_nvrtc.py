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
_FORMAT = 1

# Newest first. The PyPI packages of CUDA 13 share one folder, those of 12 have one each.
_MAJORS = (13, 12)
_FOLDERS = ("cu13/lib", "cuda_nvrtc/lib")

# Options that include files whose contents are not part of the source.
_INCLUDES = re.compile(r"-I|--include-path|-include|--pre-include")

_COMPILATION = 6  # the program has errors; the log names them


class Compiled(NamedTuple):
    """A program for one architecture."""

    code: bytes  #: PTX that ends with NUL, or a cubin
    entry: str  #: the kernel's name in it
    architecture: str
    log: str  #: the compiler's warnings; empty if it comes from the cache


def compile_source(source: str, name: str, architecture: str, options: Sequence[str] = (), driver: int = 0) -> Compiled:
    """Compile CUDA C++, or take the result from the cache.

    Parameters
    ----------
    source : str
    name : str
        The kernel: a function's name, or an instance of a template, ``"scale<float>"``.
    architecture : str
        ``'compute_80'`` for PTX, ``'sm_80'`` for a cubin.
    options : sequence of str
        Further options of NVRTC. With includes the cache is left out, as their
        contents may change.
    driver : int, default 0
        Major version of the CUDA driver that is to load the result, 0 for any;
        see `library`.

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
        parts = (_FORMAT, version(driver), source, name, given)
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        path = cache_folder() / "kernels" / key[:2] / key
        found = _load(path, architecture)
        if found is not None:
            return found
    made = _compile(source, name, architecture, given, library(driver))
    if path is not None:
        _store(path, made)
    return made


# -- the cache --------------------------------------------------------------


def _load(path: Path, architecture: str) -> Compiled | None:
    try:
        head, _, code = path.read_bytes().partition(b"\n")
        entry, digest = json.loads(head)
    except (OSError, ValueError):
        return None
    if hashlib.sha256(code).hexdigest() != digest:
        return None  # cut short or changed: compile again
    return Compiled(code, entry, architecture, "")


def _store(path: Path, made: Compiled) -> None:
    """Write a result atomically: a concurrent reader finds nothing or all of it."""
    head = json.dumps([made.entry, hashlib.sha256(made.code).hexdigest()]).encode()
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


def _candidates(soname: str) -> Iterator[str]:
    """Yield what to hand to the loader for a version: the PyPI packages, the system, a toolkit."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for folder in _FOLDERS:
            # By its path it finds its builtins, which lie beside it.
            path = Path(place, folder, soname)
            if path.exists():
                yield str(path)
    yield soname
    for variable in ("CUDA_PATH", "CUDA_HOME"):
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


def _compile(source: str, name: str, architecture: str, options: Sequence[str], nvrtc: Any) -> Compiled:
    program = ctypes.c_void_p()
    if "\0" in source or "\0" in name:
        raise InvalidValueError("a CUDA source and a kernel's name have no NUL characters")
    title = re.sub(r"\W", "_", name).encode()
    text = source.encode()
    made = nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, title + b".cu", 0, None, None)
    _check(nvrtc, made, f"compile kernel {name}")
    try:
        expression = name.encode()
        _check(nvrtc, nvrtc.nvrtcAddNameExpression(program, expression), f"compile kernel {name}")
        words = [option.encode() for option in options]
        status = nvrtc.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        log = _text(nvrtc, program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if status:
            reason = nvrtc.nvrtcGetErrorString(status).decode()
            what = "does not compile" if status == _COMPILATION else f"cannot be compiled: {reason}"
            raise CompileError(
                f"kernel {name} {what} for {architecture}\n{log}",
                code=status,
                operation="compile",
                log=log,
            )
        lowered = ctypes.c_char_p()
        found = nvrtc.nvrtcGetLoweredName(program, expression, ctypes.byref(lowered))
        _check(nvrtc, found, f"name of kernel {name}")
        code = _text(nvrtc, program, "CUBIN" if architecture.startswith("sm_") else "PTX")
        return Compiled(code, (lowered.value or b"").decode(), architecture, log)
    finally:
        nvrtc.nvrtcDestroyProgram(ctypes.byref(program))


def _text(nvrtc: Any, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
    buffer = ctypes.create_string_buffer(max(1, size.value))
    _check(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, buffer), what)
    return buffer.raw[: size.value]
