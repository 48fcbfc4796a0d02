"""The machine's own floor, no peer: two sleeping threads of C, and an empty call of Python."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from ..measure import Sheet
from ..peer import Peer, PeerAbsentError, command

BINARY = "HALSTREAM_BENCH_FLOOR"


def prepare(folder: Path) -> Mapping[str, str]:
    """Compile floor.c."""
    compiler = os.environ.get("CC") or shutil.which("cc")
    if compiler is None:
        raise PeerAbsentError("there is no C compiler")
    source, binary = Path(__file__).with_suffix(".c"), folder / "floor"
    if not binary.exists() or binary.stat().st_mtime < source.stat().st_mtime:
        command([*compiler.split(), "-O2", "-pthread", str(source), "-o", str(binary)])
    return {BINARY: str(binary)}


PEER = Peer("floor", "floor", "", prepare=prepare)


def measure(sheet: Sheet) -> None:
    """Run the compiled program; time a call that does nothing after the same pause."""
    output = subprocess.run([os.environ[BINARY]], check=True, capture_output=True, text=True, timeout=60).stdout
    wake, signal, back, ping = map(float, output.split())
    sheet.put_woken("handoff", wake)
    sheet.put_woken("nop", signal)
    sheet.put_woken("round_trip", back)
    sheet.put("round_trip", ping)
    sheet.asleep("python", "nothing()", {"nothing": int})
