"""The installed torch: found, checked for its version and for what it has been used for."""

from __future__ import annotations

import glob
import importlib
import importlib.util
import os
import re
import sys
from typing import Any

from ..._core import _interop
from .errors import RedirectError

__all__ = ["SUPPORTED", "installed", "refuse_fork", "refuse_gpu", "refuse_used"]

#: The first and the last minor version of torch that the module was tested with.
SUPPORTED = ((2, 13), (2, 15))

_INSTALL = "install it with `pip install torch`"
_FORKED = (
    "Cannot re-initialize CUDA in forked subprocess. To use CUDA with multiprocessing, "
    "you must use the 'spawn' start method"
)


def installed() -> Any:
    """Import the real torch.

    Raises
    ------
    RedirectError
        If there is none, it cannot be imported, or its version was not tested.
    """
    if "torch" not in sys.modules and importlib.util.find_spec("torch") is None:
        raise RedirectError(f"there is no torch in this environment; {_INSTALL}")
    try:
        torch = importlib.import_module("torch")
    except Exception as exc:  # above all a library of CUDA's that is missing
        raise RedirectError(
            f"torch is installed and cannot be imported: {type(exc).__name__}: {exc}; install it again, with "
            "`pip install --force-reinstall torch`"
        ) from exc
    text = getattr(torch, "__version__", None)
    if text is None:  # a folder called torch on sys.path, which Python takes for a package
        place = ", ".join(getattr(torch, "__path__", ())) or "?"
        raise RedirectError(f"there is no torch in this environment, only a folder of that name ({place}); {_INSTALL}")
    found = re.match(r"(\d+)\.(\d+)", str(text))
    version = (int(found[1]), int(found[2])) if found else (0, 0)
    first, last = SUPPORTED
    if not first <= version <= last:
        raise RedirectError(
            f"torch {text} was not tested with this version of halstream, which takes over torch's CUDA device only "
            f"from {_dotted(first)} to {_dotted(last)}; install one of these, for example with "
            f"`pip install 'torch=={_dotted(last)}.*'`" + (", or a newer halstream" if version > last else "")
        )
    return torch


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


def refuse_fork() -> None:
    """Raise torch's own error in a process that was forked from one that had used the runtime."""
    if _interop.in_forked_child():
        raise RuntimeError(_FORKED)


def refuse_used(torch: Any) -> None:
    """Raise if torch's own CUDA was used in this process: its tensors would lose their device."""
    if torch.cuda.is_initialized():
        raise RedirectError(
            "torch.cuda was used already in this process, with its own device; redirect it before the first use: "
            "`import halstream.torch.cuda_on_host` as the first line of the program, `halstream run --torch`, "
            "or `pytest --stream-torch`"
        )


def refuse_gpu(torch: Any, instead_of_gpu: bool) -> None:
    """Raise if this torch can use a GPU of this machine and nobody asked to hide it."""
    if instead_of_gpu or os.environ.get("HALSTREAM_TORCH_INSTEAD_OF_GPU") == "1":
        return
    if torch.version.cuda is None or not _visible():
        return
    # Not asked of the driver: a question would initialise it.
    devices = sorted(glob.glob("/dev/nvidia[0-9]*")) or glob.glob("/dev/dxg")
    if devices:
        raise RedirectError(
            f"this machine has a GPU ({devices[0]}) that torch {torch.__version__} can use, and programs would not "
            "see it any more; ask for that with redirect(instead_of_gpu=True) or HALSTREAM_TORCH_INSTEAD_OF_GPU=1"
        )


def _visible() -> bool:
    chosen = os.environ.get("CUDA_VISIBLE_DEVICES")
    return chosen is None or chosen.strip() not in ("", "-1")
