"""pyopencl on Intel's CPU runtime, whose workers spin before they sleep.

An in-order command queue is a stream, an event is an event. The empty operation is a marker or a kernel that does
nothing, whichever is faster; a record is a marker. Intel's runtime completes a marker on an idle queue in the calling
thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..measure import Sheet
from ..peer import Peer


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


def measure(sheet: Sheet) -> None:
    """Measure the rows that have an equivalent."""
    import pyopencl as cl  # type: ignore[import-not-found]

    device = cl.get_platforms()[0].get_devices()[0]
    context = cl.Context([device])
    q, q2 = cl.CommandQueue(context), cl.CommandQueue(context)
    env: dict[str, Any] = {"mark": cl.enqueue_marker, "q": q, "q2": q2, "event": cl.enqueue_marker(q)}
    q.finish()
    sheet.batch("record", "mark(q)", env, "q.finish()", "busy")
    sheet.single("record", "mark(q)", env, "q.finish()", "idle")
    sheet.batch("query", "event.command_execution_status", env)
    sheet.single("round_trip", "mark(q); q.finish()", env, way="marker")
    # The marker is the operation and the event.
    sheet.single("cross", "e = mark(q); q.flush(); mark(q2, wait_for=[e]); q2.finish()", env)
    with sheet.attempt("round_trip"):
        env |= {"run": cl.enqueue_nd_range_kernel, "kernel": cl.Program(context, "kernel void nop() {}").build().nop}
        sheet.single("round_trip", "run(q, kernel, (1,), (1,)); q.finish()", env, way="kernel")
