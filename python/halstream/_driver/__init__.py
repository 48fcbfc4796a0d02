"""The CUDA driver on the host device: what programs load as libcuda.so.1, here and in the processes that they start."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

from .._capi import get_api
from .._errors import BackendAbsentError

__all__ = ["provide", "runtime", "standalone", "variables"]

_FOLDER = Path(__file__).parent
_LIBRARY = _FOLDER / "libcuda.so.1"
#: The library that has the functions for programs in other languages: here, or where `make cuda-library` puts it.
_STANDALONE = "libhalstream_cuda.so"
#: NVIDIA's compilers that have a library of ours in front of them -> where the packages of PyPI have them.
_COMPILERS = {
    "HALSTREAM_NVRTC": ("libnvrtc.so", "nvidia/cuda_nvrtc/lib", "nvidia/cu13/lib"),
    "HALSTREAM_NVJITLINK": ("libnvJitLink.so", "nvidia/nvjitlink/lib", "nvidia/cu13/lib"),
}


def variables(python: bool = True) -> dict[str, str]:
    """Return the variables by which programs find the driver.

    Parameters
    ----------
    python : bool, default True
        The program is one in Python, or may start one; else a compiled one, which needs a library of its own.

    Raises
    ------
    BackendAbsentError
        If that library was not built, or this platform has none.
    """
    if not _LIBRARY.exists():
        raise BackendAbsentError(
            "this build has no libcuda.so.1; CUDA programs run on Linux only", operation="provide driver"
        )
    path = [str(_FOLDER), *filter(None, os.environ.get("LD_LIBRARY_PATH", "").split(os.pathsep))]
    found = {"LD_LIBRARY_PATH": os.pathsep.join(dict.fromkeys(path)), "HALSTREAM_BACKEND": "host"}
    found |= {name: compiler for name in _COMPILERS if (compiler := _compiler(name))}
    # Of numba's older versions, which look nowhere else.
    found["NUMBA_CUDA_DRIVER"] = str(_LIBRARY)
    library = standalone()
    if library is not None:
        found["HALSTREAM_CUDA_RUNTIME"] = str(library)
    elif not python:
        raise BackendAbsentError(
            "compiled programs need libhalstream_cuda.so, which is not built: say `make cuda-library` in halstream's "
            "sources, and set HALSTREAM_CUDA_RUNTIME to build/cuda/lib/libhalstream_cuda.so there",
            operation="provide driver",
        )
    return found


def standalone() -> Path | None:
    """Return the library for compiled programs, None if there is none."""
    given = os.environ.get("HALSTREAM_CUDA_RUNTIME")
    tree = _FOLDER.parents[2] / "build" / "cuda" / "lib"
    places = [Path(given)] if given else [_FOLDER / _STANDALONE, tree / _STANDALONE]
    return next((place for place in places if place.exists()), None)


def runtime() -> Path | None:
    """Return CUDA's runtime on this driver, for programs that nvcc compiles; None if it was not built."""
    path = _FOLDER / "front" / "libhalstream_cudart.so"
    return path if path.exists() else None


def _compiler(name: str) -> str | None:
    """Return the path of one of NVIDIA's compilers, None if it is not installed."""
    if name in os.environ:
        return os.environ[name]
    library, *folders = _COMPILERS[name]
    for entry in sys.path:
        for folder in folders:
            found = sorted(Path(entry, folder).glob(f"{library}.[0-9][0-9]"))
            if found:
                return str(found[-1])
    return None


def provide() -> None:
    """Give this process, and those that it starts, the driver; the backend is opened.

    Raises
    ------
    BackendAbsentError
        If this platform has none.
    """
    os.environ.update(variables())
    get_api()
    # The loader has read its path already, but takes a library of that name which is loaded.
    ctypes.CDLL(str(_LIBRARY), mode=ctypes.RTLD_GLOBAL)
