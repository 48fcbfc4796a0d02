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

from .._errors import BackendAbsentError, CompileError, InvalidValueError, NotSupportedError

# Version of the cache's file format.
_FORMAT = 1

# Newest first. The PyPI packages of CUDA 13 share one folder, those of 12 have one each.
_SONAMES = ("libnvrtc.so.13", "libnvrtc.so.12")
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


def compile_source(source: str, name: str, architecture: str, options: Sequence[str] = ()) -> Compiled:
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
        parts = (_FORMAT, version(), source, name, given)
        key = hashlib.sha256(json.dumps(parts).encode()).hexdigest()
        path = cache_folder() / "kernels" / key[:2] / key
        found = _load(path, architecture)
        if found is not None:
            return found
    made = _compile(source, name, architecture, given)
    if path is not None:
        _store(path, made)
    return made


# -- the cache --------------------------------------------------------------


def cache_folder() -> Path:
    """Return HALSTREAM_CACHE_DIR, or halstream's part of the user's cache folder."""
    chosen = os.environ.get("HALSTREAM_CACHE_DIR")
    if chosen:
        return Path(chosen)
    user = os.environ.get("XDG_CACHE_HOME", "")
    # The rules of XDG: a relative path does not count.
    return (Path(user) if os.path.isabs(user) else Path.home() / ".cache") / "halstream"


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


def _candidates() -> Iterator[str]:
    """Yield what to hand to the loader: the PyPI packages, the system, a toolkit."""
    try:
        spec = importlib.util.find_spec("nvidia")
    except (ImportError, ValueError):
        spec = None
    for place in (spec.submodule_search_locations or ()) if spec else ():
        for folder in _FOLDERS:
            for soname in _SONAMES:
                # By its path it finds its builtins, which lie beside it.
                path = Path(place, folder, soname)
                if path.exists():
                    yield str(path)
    yield from _SONAMES
    for variable in ("CUDA_PATH", "CUDA_HOME"):
        root = os.environ.get(variable)
        for folder in ("lib64", "lib") if root else ():
            for soname in _SONAMES:
                yield str(Path(root or "", folder, soname))


@functools.cache
def _library() -> Any:
    reasons = []
    for name in _candidates():
        try:
            library = ctypes.CDLL(name)
        except OSError as exc:
            reasons.append(str(exc))
            continue
        library.nvrtcGetErrorString.restype = ctypes.c_char_p
        return library
    raise BackendAbsentError(
        f"NVRTC, which compiles CUDA sources, is not installed; say pip install 'halstream[cuda]' ({reasons[0]})",
        operation="compile",
    )


def _check(status: int, doing: str) -> None:
    if status:
        text = _library().nvrtcGetErrorString(status).decode()
        raise CompileError(f"{doing}: {text} ({status})", code=status, operation="compile")


@functools.cache
def version() -> tuple[int, int]:
    """Return NVRTC's version."""
    major, minor = ctypes.c_int(), ctypes.c_int()
    _check(_library().nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)), "NVRTC version")
    return major.value, minor.value


@functools.cache
def supported() -> tuple[int, ...]:
    """Return the architectures that NVRTC knows, such as 80, from the oldest."""
    library, count = _library(), ctypes.c_int()
    _check(library.nvrtcGetNumSupportedArchs(ctypes.byref(count)), "NVRTC architectures")
    numbers = (ctypes.c_int * count.value)()
    _check(library.nvrtcGetSupportedArchs(numbers), "NVRTC architectures")
    return tuple(sorted(numbers))


def target(major: int, minor: int) -> str:
    """Return what to compile for, given the compute capability of a device.

    A cubin where NVRTC knows the device; else PTX of the newest architecture
    before it, which the driver finishes.
    """
    device = major * 10 + minor
    return f"sm_{device}" if device in supported() else virtual(major, minor)


def virtual(major: int, minor: int) -> str:
    """Return the newest architecture whose PTX a device of a compute capability can run.

    Raises
    ------
    NotSupportedError
        If the device is older than all that NVRTC knows.
    """
    known = supported()
    older = [number for number in known if number <= major * 10 + minor]
    if not older:
        raise NotSupportedError(
            f"NVRTC {'.'.join(map(str, version()))} knows no architecture as old as "
            f"{major}.{minor}; its oldest is {known[0]}",
            operation="compile",
        )
    return f"compute_{older[-1]}"


def _compile(source: str, name: str, architecture: str, options: Sequence[str]) -> Compiled:
    library, program = _library(), ctypes.c_void_p()
    if "\0" in source or "\0" in name:
        raise InvalidValueError("a CUDA source and a kernel's name have no NUL characters")
    title = re.sub(r"\W", "_", name).encode()
    text = source.encode()
    _check(
        library.nvrtcCreateProgram(ctypes.byref(program), text, title + b".cu", 0, None, None),
        f"compile kernel {name}",
    )
    try:
        expression = name.encode()
        _check(library.nvrtcAddNameExpression(program, expression), f"compile kernel {name}")
        words = [option.encode() for option in options]
        status = library.nvrtcCompileProgram(program, len(words), (ctypes.c_char_p * len(words))(*words))
        log = _text(program, "ProgramLog").rstrip(b"\0").decode(errors="replace").strip()
        if status:
            reason = library.nvrtcGetErrorString(status).decode()
            what = "does not compile" if status == _COMPILATION else f"cannot be compiled: {reason}"
            raise CompileError(
                f"kernel {name} {what} for {architecture}\n{log}",
                code=status,
                operation="compile",
                log=log,
            )
        lowered = ctypes.c_char_p()
        _check(
            library.nvrtcGetLoweredName(program, expression, ctypes.byref(lowered)),
            f"name of kernel {name}",
        )
        code = _text(program, "CUBIN" if architecture.startswith("sm_") else "PTX")
        return Compiled(code, (lowered.value or b"").decode(), architecture, log)
    finally:
        library.nvrtcDestroyProgram(ctypes.byref(program))


def _text(program: ctypes.c_void_p, what: str) -> bytes:
    library, size = _library(), ctypes.c_size_t()
    _check(getattr(library, f"nvrtcGet{what}Size")(program, ctypes.byref(size)), what)
    buffer = ctypes.create_string_buffer(max(1, size.value))
    _check(getattr(library, f"nvrtcGet{what}")(program, buffer), what)
    return buffer.raw[: size.value]
