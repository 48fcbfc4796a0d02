"""The report of `halstream info`: versions, backends, devices, the environment."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import sys
from typing import Any

from .. import __version__, _native, backend, devices, use_backend
from .._errors import HalError
from .._kernel import _nvrtc as _compiler
from .._memory import memory_info
from .._records import decode
from .doctor import BACKENDS

__all__ = ["VARIABLES", "gather"]

#: Environment variables that the runtime reads.
VARIABLES = {
    "HALSTREAM_BACKEND": "auto (the default), host, cuda or ascend; read at the first use",
    "HALSTREAM_CUDA_LIBRARY": "the CUDA driver's library, by name or path (libcuda.so.1)",
    "HALSTREAM_ASCEND_LIBRARY": "CANN's library, by name or path (libascendcl.so)",
    "HALSTREAM_HOST_DEVICES": "devices that the host backend shows (2)",
    "HALSTREAM_HOST_ENGINES": "copies, kernels and native functions at once on a device (processors, at least 2)",
    "HALSTREAM_HOST_THREADS": "maximum number of threads for Python functions on streams (32)",
    "HALSTREAM_HOST_MEMORY": "bytes of each host device's memory, and of pinned memory (half of the machine's)",
    "HALSTREAM_KERNEL_LIMIT": "instructions after which a kernel on the host device fails (17179869184)",
    "HALSTREAM_CACHE_DIR": "folder for compiled kernels and libraries, and for tokens (the user's cache folder)",
    "HALSTREAM_SANITIZE": "1, warn, raise: report unordered accesses; ,pages: undeclared ones; ,threads: real threads",
    "HALSTREAM_CUDA_RUNTIME": "libhalstream_cuda.so, which compiled CUDA programs need (build/cuda/lib of the sources)",
    "HALSTREAM_EXTENSION": "the extension that libcuda.so.1 loads in a process of Python (the one beside it)",
    "HALSTREAM_NVRTC": "NVRTC's library, set by halstream run --cuda: what programs get of it is PTX",
    "HALSTREAM_NVJITLINK": "nvJitLink's library, set by halstream run --cuda: what programs get of it is PTX",
    "HALSTREAM_CUDA_MESSAGES": "CUDA programs: 0: say nothing on stderr; all: say why each call failed",
    "HALSTREAM_RECORD": "AscendCL and CUDA programs in C: the file that gets what the program did, at its end",
    "HALSTREAM_SCHEDULE": "AscendCL and CUDA programs in C: the schedule to run under, such as random 7",
    "HALSTREAM_SUPPRESSIONS": "file with suppression rules for the sanitizer",
    "HALSTREAM_KNOWN_LIBRARIES": "0: the sanitizer's rules for known libraries do not count",
    "HALSTREAM_STALL": "0: do not report waits that can never end",
    "HALSTREAM_STALL_S": "under a schedule: seconds after which a function is taken to wait for the host (5)",
    "HALSTREAM_FINDINGS": "a folder that gets findings instead of stderr, set by halstream run --torch --sanitize",
    "HALSTREAM_TORCH": "redirect, set by halstream run --torch for the processes that its program starts",
    "HALSTREAM_TORCH_USED": "a file that these make once they use the device, set by halstream run --torch --schedules",
    "HALSTREAM_PADDLE": "plugin, set by halstream run --paddle for the processes that its program starts",
    "HALSTREAM_PADDLE_DEVICE": "what the real Paddle calls halstream's device type (custom_cpu)",
    "HALSTREAM_TORCH_INSTEAD_OF_GPU": "1: halstream.torch.redirect may hide a GPU that the real torch could use",
    "HALSTREAM_TORCH_CAPABILITY": "the compute capability that programs of the real torch see there (8.0)",
    "HALSTREAM_TORCH_COMPILE": "eager: the real torch.compile compiles nothing",
    "HALSTREAM_TORCH_STANDINS": "0, or names: which stand-ins for compiled packages the real torch is given (all)",
    "HALSTREAM_TRITON_AUTOTUNE": "1: autotuned Triton kernels run in all configurations, not the first only",
    "HALSTREAM_TORCH_OBJECTS": "folder in which builds of the module for torch keep object files",
    "HALSTREAM_STRICT": "1: dialects show only what the packages have that they mirror (halstream.strict())",
    "HALSTREAM_LEAKS": "1: at the end of the process, report streams, events and memory that were not released",
}


def gather() -> dict[str, Any]:
    """Return everything as plain values, ready for JSON.

    Each backend is tried and the one in use is chosen again, which works while
    no stream, event or memory is alive.
    """
    return {
        "version": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "executable": sys.executable,
        "platform": platform.platform(),
        "wheel": _wheel(),
        **_backends(),
        "environment": _environment(),
        "nvrtc": _nvrtc(),
        "packages": {name: _version(name) for name in ("numpy", "typer", "rich", "perfetto", "pytest")},
    }


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _wheel() -> str:
    """Return the tag of the wheel that was installed, or why there is none."""
    try:
        distribution = importlib.metadata.distribution("halstream")
    except importlib.metadata.PackageNotFoundError:
        return "none: halstream is imported from its sources, not installed"
    tags = re.findall(r"(?m)^Tag: (.+)$", distribution.read_text("WHEEL") or "")
    editable = '"editable": true' in (distribution.read_text("direct_url.json") or "")
    return ("editable, " if editable else "") + (", ".join(tags) or "unknown")


def _backends() -> dict[str, Any]:
    """Return the backend in use, why the automatic choice passed others by, and what each has."""
    try:
        used, why = backend(), None
        passed = decode(_native.backend_passed())
    except Exception as exc:  # the extension may be missing, or the choice wrong
        used, why, passed = None, _reason(exc), []
    found = []
    for name in BACKENDS:
        entry: dict[str, Any] = {"name": name, "usable": True, "reason": None, "devices": []}
        try:
            if name != used:
                use_backend(name)
            entry["devices"] = _devices()
        except Exception as exc:
            entry |= {"usable": False, "reason": _reason(exc)}
        finally:
            if used is not None and backend() != used:
                use_backend(used)
        found.append(entry)
    return {"backend": used, "backend_reason": why, "backend_passed": passed, "backends": found}


def _reason(exc: Exception) -> str:
    return str(exc) if isinstance(exc, HalError) else f"{type(exc).__name__}: {exc}"


def _devices() -> list[dict[str, Any]]:
    found = []
    for device in devices():
        entry: dict[str, Any] = {"ordinal": device.ordinal, "name": device.name}
        try:
            entry["memory_free"], entry["memory_total"] = memory_info(device)
        except HalError as exc:
            entry |= {"memory_free": None, "memory_total": None, "memory_reason": str(exc)}
        found.append(entry)
    return found


def _environment() -> list[dict[str, str | None]]:
    """Return the variables that are known or set."""
    others = {name for name in os.environ if name.startswith("HALSTREAM_")} - set(VARIABLES)
    unknown = "not a variable that halstream reads"
    return [
        {"name": name, "value": os.environ.get(name), "meaning": VARIABLES.get(name, unknown)}
        for name in [*VARIABLES, *sorted(others)]
    ]


def _nvrtc() -> dict[str, Any]:
    """Return whether CUDA sources can be compiled here."""
    try:
        return {
            "found": True,
            "version": ".".join(map(str, _compiler.version())),
            "library": str(_compiler.library()._name),
            "reason": None,
        }
    except (HalError, OSError, AttributeError) as exc:
        return {"found": False, "version": None, "library": None, "reason": str(exc)}
