"""nvcc: with it torch's `load` and `load_inline` compile CUDA sources to PTX, which the host device executes."""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from ... import _driver
from . import cache
from .patches import Patches

__all__ = ["Toolkit", "compiling", "find_toolkit"]

#: The capability of the host device, as PTX: no machine code of a GPU is compiled.
_ARCHITECTURE = "-gencode=arch=compute_80,code=compute_80"
#: From CUDA 13 on nvcc compresses PTX in a format that is not read here.
_UNCOMPRESSED = "--compress-mode=none"
#: Options that choose an architecture.
_CHOOSE = ("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code")
#: Where NVIDIA's packages on PyPI have their files for CUDA 13. Those for CUDA 12 have no nvcc.
_PACKAGES = Path("nvidia", "cu13")


class Toolkit(NamedTuple):
    """An nvcc that can be used."""

    home: Path  #: the folder with bin/nvcc
    includes: tuple[Path, ...]  #: folders of headers beside its own
    runtime: Path  #: halstream's CUDA runtime


def find_toolkit(torch: Any, extension: Any) -> Toolkit | None:
    """Return the toolkit that torch finds (CUDA_HOME, or nvcc on PATH), or that of NVIDIA's packages; None without one.

    Parameters
    ----------
    torch, extension : module
        torch and torch.utils.cpp_extension.
    """
    runtime = _driver.runtime()
    if runtime is None or torch.version.cuda is None:
        return None
    if extension.CUDA_HOME and Path(extension.CUDA_HOME, "bin", "nvcc").is_file():
        return Toolkit(Path(extension.CUDA_HOME), (), runtime)
    places = [Path(entry or os.curdir, _PACKAGES).absolute() for entry in sys.path]
    home = next((place for place in places if (place / "bin" / "nvcc").is_file()), None)
    if home is None:
        return None
    headers = [folder for place in places for folder in (place / "include", place / "include" / "cccl")]
    return Toolkit(home, tuple(dict.fromkeys(folder for folder in headers if folder.is_dir())), runtime)


_compiling = threading.RLock()


@contextlib.contextmanager
def compiling(torch: Any, module: Any, extension: Any, toolkit: Toolkit) -> Iterator[None]:
    """Let torch compile and load with a toolkit.

    The extension is linked to the module in front of torch's libraries for CUDA, and to halstream's CUDA runtime in
    place of NVIDIA's. It is kept in a folder of its own, so that a GPU's build of the same extension stays as it is.
    """
    major = int(torch.version.cuda.partition(".")[0])
    prepare, write = extension._prepare_ldflags, extension._write_ninja_file_to_build_library

    @functools.wraps(prepare)
    def prepare_to_link(*args: Any, **kwargs: Any) -> list[str]:
        flags = [flag for flag in prepare(*args, **kwargs) if flag != "-lcudart"]
        return [module.__file__, str(toolkit.runtime), *flags]

    @functools.wraps(write)
    def write_for_host(*args: Any, **kwargs: Any) -> Any:
        kwargs["extra_include_paths"] = [*kwargs["extra_include_paths"], *map(str, toolkit.includes)]
        kwargs["extra_cuda_cflags"] = _without_architecture(kwargs["extra_cuda_cflags"])
        if major >= 13:
            kwargs["extra_cuda_cflags"].append(_UNCOMPRESSED)
        return write(*args, **kwargs)

    with _compiling:
        module.connect_cuda_runtime(str(toolkit.runtime), major)
        patches = Patches()
        try:
            patches.set(extension, "CUDA_HOME", str(toolkit.home))
            patches.set(extension, "get_default_build_root", lambda: str(cache.folder() / "extensions"))
            patches.set(extension, "_get_cuda_arch_flags", lambda *args: [_ARCHITECTURE])
            patches.set(extension, "_prepare_ldflags", prepare_to_link)
            patches.set(extension, "_write_ninja_file_to_build_library", write_for_host)
            # Operators of the extension have kernels that run here: none is replaced by that for the CPU.
            patches.set(torch.ops, "load_library", torch.ops.load_library.__wrapped__)
            yield
        finally:
            patches.undo()


def _without_architecture(flags: list[str]) -> list[str]:
    """Return the options for nvcc without those that choose an architecture."""
    kept, left = [], iter(flags)
    for flag in left:
        if flag in _CHOOSE:
            next(left, None)  # its value is the next one
        elif not flag.startswith(tuple(f"{option}=" for option in _CHOOSE)):
            kept.append(flag)
    return kept
