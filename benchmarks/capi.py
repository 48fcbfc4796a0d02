"""Times the functions of halstream.h, as a C program calls them.

Usage: python -m benchmarks.capi

Prints the median of 9 rounds for each row, in nanoseconds for one call.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import statistics
import subprocess
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

import halstream

ROUNDS, COUNT = 9, 20_000


def load(folder: Path) -> Any:
    """Compile capi.c and import it."""
    target = folder / "capi.so"
    include = [f"-I{halstream.get_include()}", f"-I{sysconfig.get_paths()['include']}"]
    source = Path(__file__).with_suffix(".c")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", *include, str(source), "-o", str(target)], check=True)
    loader = importlib.machinery.ExtensionFileLoader("capi", str(target))
    spec = importlib.util.spec_from_file_location("capi", target, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        module = load(Path(folder))
        rounds = [module.measure(halstream.get_api(), COUNT) for _ in range(ROUNDS)]
    for row in rounds[0]:
        print(f"{row:36} {statistics.median(one[row] for one in rounds):8.1f} ns")


if __name__ == "__main__":
    main()
