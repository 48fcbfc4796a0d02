"""CUDA C++ becomes a program by NVRTC, which needs no GPU.

Results are kept in the folder HALSTREAM_CACHE_DIR, as those of `halstream.Kernel` are.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..._errors import CompileError
from ..._kernel import _launch, _nvrtc
from ._errors import unsupported
from .compiler import CompileException

__all__ = ["check_backend", "load"]

# As cupy compiles everything.
_OPTIONS = ("-ftz=true", "--device-as-default-execution-space")
# Headers of cupy's names for where they are not installed, and one of CUDA's.
_OWN = Path(__file__).parents[1] / "_include"
_COMPLEX = _OWN / "complex"
_INCLUDE = re.compile(r"(?m)^\s*#\s*include\b")


def wheel_headers() -> list[Path]:
    """Return the folders of the headers in cupy's wheel, its own and CUDA's; none if it is not installed."""
    try:
        spec = importlib.util.find_spec("cupy")
    except (ImportError, ValueError):
        return []
    for place in (spec.submodule_search_locations or ()) if spec else ():
        if (folder := Path(place, "_core", "include")).is_dir():
            return [folder, *(folder / "cupy" / "_cccl" / part for part in ("cub", "thrust", "libcudacxx"))]
    return []


def headers_of(source: str, translated: bool) -> list[Path]:
    """Return the folders of the headers that a source may include: cupy's own where they are installed, else ours.

    Those of cupy for 16-bit floats need one of CUDA's. One that is to be translated
    gets functions of complex numbers that take both types.
    """
    if not _INCLUDE.search(source):
        return []
    toolkit, wheel = _nvrtc.toolkit_headers(), wheel_headers()
    if "cupy/float16.cuh" in source and not any((folder / "cuda_fp16.h").exists() for folder in toolkit):
        wheel = []
    found = [folder for folder in (*wheel, *toolkit, _OWN) if folder.is_dir()]
    return [_COMPLEX, *found] if translated else [*found, _COMPLEX]


def check_backend(backend: str, jitify: Any) -> None:
    """Refuse what compiles by something else than NVRTC.

    Raises
    ------
    CUDARuntimeError
        Of the kind "not supported", with what to do.
    ValueError
        If there is no such backend.
    """
    if backend == "nvcc":
        raise unsupported(
            "backend='nvcc' runs a compiler of the CUDA toolkit, which is not built; leave the backend out, or "
            "compile to PTX by `nvcc -ptx -arch=compute_80` and give RawModule(path=...)"
        )
    if backend != "nvrtc":
        raise ValueError(f"Invalid backend {backend}")
    if jitify:
        raise unsupported(
            "jitify=True is not built: leave it out, and give the folders of headers by options=('-I...',)"
        )


def load(
    source: str,
    ordinal: int,
    options: tuple[str, ...] = (),
    *,
    title: str,
    names: Sequence[str] = (),
    shared: bool = False,
    translated: bool = False,
    log_stream: Any = None,
) -> tuple[_launch.Program, dict[str, str]]:
    """Compile a source and load it on a device; return the program, and its names of the names that were given.

    Parameters
    ----------
    source : str
    ordinal : int
        Of the device.
    options : tuple of str
        Further options of NVRTC.
    title : str
        What errors call the program.
    names : sequence of str
        Kernels and variables of C++ whose names in the program are wanted.
    shared : bool, default False
        One program for all who have the same source.
    translated : bool, default False
        Whether functions of ``cuComplex.h`` take complex numbers of both types.
    log_stream : file, optional
        Is given the compiler's words; it compiles in any case then.

    Raises
    ------
    CompileException
        If the source has errors.
    BackendAbsentError
        If NVRTC is not installed.
    """
    headers = headers_of(source, translated)

    def compile(architecture: str, driver: int) -> _nvrtc.Program:
        return _nvrtc.compile_program(
            source,
            names,
            architecture,
            (*options, *_OPTIONS),
            driver,
            title=title,
            headers=headers,
            fresh=log_stream is not None,
        )

    try:
        made, program = _launch.load_for(ordinal, compile, _launch.load_program if shared else _launch.Program)
    except CompileError as exc:
        if log_stream is not None:
            log_stream.write(exc.log)
        raise CompileException(exc.log or str(exc), source, title, options) from exc
    if log_stream is not None:
        log_stream.write(made.log)
    return program, made.names
