"""pyopencl on Intel's CPU runtime: workers of oneTBB that spin before they sleep."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ..peer import Peer
from ._opencl import measure as measure


def prepare(folder: Path) -> Mapping[str, str]:
    """Name the runtime's library to the loader: the wheel's own ICD file has a wrong path."""
    libraries = folder / "venv" / "lib"
    vendors = folder / "vendors"
    vendors.mkdir(exist_ok=True)
    library = libraries / "libintelocl.so"
    (vendors / "intel.icd").write_text(f"{library}\n")
    return {
        "OCL_ICD_VENDORS": str(vendors),
        "OCL_ICD_FILENAMES": str(library),
        "LD_LIBRARY_PATH": str(libraries),
        "PYOPENCL_NO_CACHE": "1",
    }


PEER = Peer(
    "intel",
    "Intel OpenCL",
    "pyopencl",
    # The runtime's wheel does not ask for the compiler's libraries, but needs them.
    ("pyopencl==2026.1.4", "intel-opencl-rt==2026.2.0", "intel-cmplr-lib-rt==2026.2.0"),
    prepare,
)
