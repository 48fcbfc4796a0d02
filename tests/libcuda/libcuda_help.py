"""What tests of libcuda.so.1 share: where its parts are, and the types of its fixtures."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAMS = Path(__file__).parent / "programs"
LIBRARY = ROOT / "build" / "cuda" / "lib"
DRIVER = ROOT / "python" / "halstream" / "_driver"

Compiled = Callable[[str], Path]
Run = Callable[..., "subprocess.CompletedProcess[str]"]
