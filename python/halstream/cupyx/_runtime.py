"""cupyx.get_runtime_info (cupy 14.2.0)."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import metadata

import numpy

from .._core import _interop
from ..cupy import __version__ as cupy_version
from ..cupy.cuda import Device, driver, get_local_runtime_version, runtime

__all__ = ["get_runtime_info"]


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


class _RuntimeInfo:
    """What `get_runtime_info` returns; its text is the report."""

    def __init__(self, *, full: bool = True) -> None:
        self._full = full
        self.cupy_version: str = cupy_version
        self.numpy_version: str = numpy.version.full_version
        self.scipy_version: str | None = _version("scipy")
        self.cuda_path: str | None = None
        self.nvcc_path: str | None = None
        self.cuda_build_version: str = str(driver.get_build_version())
        self.cuda_driver_version: int | str = _or_error(runtime.driverGetVersion)
        self.cuda_runtime_version: int | str = _or_error(runtime.runtimeGetVersion)
        self.cuda_local_runtime_version: int | str = _or_error(get_local_runtime_version)

    def __str__(self) -> str:
        records: list[tuple[str, object]] = [
            ("OS", platform.platform()),
            ("Python Version", platform.python_version()),
            ("CuPy Version", self.cupy_version),
            ("CuPy Platform", f"halstream ({_interop.backend_name()} backend)"),
            ("NumPy Version", self.numpy_version),
            ("SciPy Version", self.scipy_version),
            ("CUDA Root", self.cuda_path),
            ("NVCC PATH", self.nvcc_path),
            ("CUDA Build Version", self.cuda_build_version),
            ("CUDA Driver Version", self.cuda_driver_version),
            (
                "CUDA Runtime Version",
                f"{self.cuda_runtime_version} (linked to CuPy) / {self.cuda_local_runtime_version} (locally installed)",
            ),
        ]
        for ordinal in range(runtime.getDeviceCount()):
            device = Device(ordinal)
            name = runtime.getDeviceProperties(ordinal)["name"].decode()
            records += [
                (f"Device {ordinal} Name", name),
                (f"Device {ordinal} Compute Capability", device.compute_capability),
                (f"Device {ordinal} PCI Bus ID", device.pci_bus_id),
            ]
        width = max(len(label) for label, _ in records) + 2
        return "".join(f"{label:{width}}: {value}\n" for label, value in records)


def _or_error(ask: Callable[[], int]) -> int | str:
    try:
        return ask()
    except runtime.CUDARuntimeError as exc:
        return repr(exc)


def get_runtime_info(*, full: bool = True) -> _RuntimeInfo:
    """cupyx.get_runtime_info (14.2.0): without the libraries of CUDA, which are not used here."""
    return _RuntimeInfo(full=full)
