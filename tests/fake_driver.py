"""The look-alike of the CUDA driver's library: where it is, and its build on demand."""

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


@functools.cache
def unavailable() -> str:
    """Build the library if it is missing; return why that is not possible, '' if it is there."""
    if FAKE_CUDA.exists():
        return ""
    if not shutil.which("make"):
        return f"{FAKE_CUDA} is not built, and there is no make to build it"
    FAKE_CUDA.parent.mkdir(parents=True, exist_ok=True)
    with open(FAKE_CUDA.parent / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # workers of pytest-xdist come here at once
        done = subprocess.run(
            ["make", "--silent", str(FAKE_CUDA.relative_to(ROOT))], cwd=ROOT, capture_output=True, text=True
        )
    if done.returncode or not FAKE_CUDA.exists():
        return f"{FAKE_CUDA} cannot be built: {(done.stderr or done.stdout).strip().splitlines()[-1:]}"
    return ""


def require() -> str:
    """Return the library's path; skip the test if it is missing and cannot be built."""
    if reason := unavailable():
        pytest.skip(reason)
    return str(FAKE_CUDA)
