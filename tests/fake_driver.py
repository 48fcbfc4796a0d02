"""The look-alikes of the vendors' libraries: where they are, and their build on demand."""

from __future__ import annotations

import fcntl
import functools
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

#: The library that `make build` compiles from cuda/fakecuda.
FAKE_CUDA = ROOT / "build" / "fakecuda" / "libfakecuda.so"


#: The one that it compiles from ascend/fakeacl.
FAKE_ACL = ROOT / "build" / "fakeacl" / "libfakeacl.so"

#: Name of a backend on a look-alike -> the variable that names its library, and the library.
LIBRARIES = {
    "cuda-fake": ("HALSTREAM_CUDA_LIBRARY", FAKE_CUDA),
    "ascend-fake": ("HALSTREAM_ASCEND_LIBRARY", FAKE_ACL),
}


@functools.cache
def unavailable(name: str = "cuda-fake") -> str:
    """Build the library if it is missing; return why that is not possible, '' if it is there."""
    library = LIBRARIES[name][1]
    if library.exists():
        return ""
    if not shutil.which("make"):
        return f"{library} is not built, and there is no make to build it"
    library.parent.mkdir(parents=True, exist_ok=True)
    with open(library.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of pytest-xdist come here at once
        done = subprocess.run(
            ["make", "--silent", str(library.relative_to(ROOT))], cwd=ROOT, capture_output=True, text=True
        )
    if done.returncode or not library.exists():
        return f"{library} cannot be built: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
    return ""


def require(name: str = "cuda-fake") -> str:
    """Return the library's path; skip the test if it is missing and cannot be built."""
    if reason := unavailable(name):
        pytest.skip(reason)
    return str(LIBRARIES[name][1])
