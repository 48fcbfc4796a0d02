"""AscendCL's calls on libascendcl.so beside OpenCL's on PoCL and on Intel's runtime, from programs in C.

Usage: python benchmarks/c_calls.py [--rounds N]

The programs take turns, N times (3); each figure is the least median of a program's runs. Others that use the machine
meanwhile make all of them longer. Where a platform cannot be had its column says so.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "c-calls"
sys.path.insert(0, str(ROOT))

from benchmarks.peers import intel, pocl  # noqa: E402

#: Nanoseconds for one call, by the name of the row.
Figures = dict[str, float]


def compiled(source: str, *flags: str) -> Path:
    """Compile one of the programs."""
    BUILD.mkdir(parents=True, exist_ok=True)
    program = BUILD / Path(source).stem
    words = [os.environ.get("CC", "cc"), "-O2", "-Wall", "-Wextra", "-Werror", str(ROOT / "benchmarks" / source)]
    subprocess.run([*words, "-o", str(program), *flags], check=True)
    return program


def measured(program: Path, *arguments: str, env: dict[str, str] | None = None) -> Figures:
    """Run a program once; return its medians."""
    done = subprocess.run(
        [program, *arguments],
        env={**os.environ, **(env or {})},
        check=True,
        capture_output=True,
        text=True,
        timeout=120,
    )
    rows = [line.split(" ", 2) for line in done.stdout.splitlines()]
    return {name: float(median) for _, median, name in rows}


def intel_runtime() -> dict[str, str]:
    """Install Intel's runtime into an environment of its own; return the variables with which it is found."""
    python = BUILD / "venv" / "bin" / "python"
    if not (BUILD / "venv" / "lib" / "libintelocl.so").exists():
        subprocess.run([sys.executable, "-m", "venv", BUILD / "venv"], check=True)
        packages = [package for package in intel.PEER.packages if not package.startswith("pyopencl")]
        subprocess.run([python, "-m", "pip", "install", "--quiet", *packages], check=True)
    return dict(intel.prepare(BUILD))


def columns() -> dict[str, Callable[[], Figures]]:
    """Return what runs each platform's program."""
    ascend = ROOT / "build" / "ascend"
    library = ascend / "lib"
    flags = [f"-I{ascend}/include", f"-L{library}", f"-Wl,-rpath,{library}", "-lascendcl", "-pthread"]
    ours = compiled("acl_calls.c", *flags)
    opencl = compiled("opencl_calls.c", "-lOpenCL")
    intels = intel_runtime()
    pocls = {**pocl.prepare(BUILD / "pocl"), "OCL_ICD_FILENAMES": ""}
    return {
        "halstream": lambda: measured(ours, env={"HALSTREAM_BACKEND": "host"}),
        "PoCL": lambda: measured(opencl, "Portable", env=pocls),
        "Intel": lambda: measured(opencl, "Intel", env=intels),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    rounds = parser.parse_args().rounds
    (BUILD / "pocl").mkdir(parents=True, exist_ok=True)
    runs = columns()
    best: dict[str, Figures] = {name: {} for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            for row, ns in run().items():
                best[name][row] = min(ns, best[name].get(row, ns))
    print(f"{'nanoseconds for one call':44}" + "".join(f"{name:>12}" for name in runs) + f"{'times':>8}")
    for row, ours in best["halstream"].items():
        others = [best[name].get(row) for name in runs if name != "halstream"]
        known = [ns for ns in others if ns is not None]
        cells = "".join(f"{ns:12.0f}" if ns is not None else f"{'-':>12}" for ns in (ours, *others))
        print(f"{row:44}{cells}" + (f"{min(known) / ours:8.1f}" if known else ""))
    return 0


if __name__ == "__main__":
    sys.exit(main())
