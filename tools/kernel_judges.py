"""Runs other projects' own tests of Triton kernels on the host device, without a GPU.

Usage: python tools/kernel_judges.py [--torch VERSION] [--only PART] [--limit S]

Liger-Kernel's tests come from its source distribution on PyPI, unchanged; what they need goes into an environment of
its own, build/kernel-judges, which uses the torch of tools/torch_env.py. A table says how many of each file passed; the
exit code is 0 if no more failed than KNOWN says.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import torch_env

FOLDER = torch_env.BUILD / "kernel-judges"
PACKAGE, VERSION = "liger-kernel", "0.8.5"
NEEDS = (
    "setuptools", "wheel", "pytest", "pytest-timeout", "pytest-rerunfailures", "transformers", "datasets", "scipy",
    "cloudpickle",
)  # fmt: skip
#: The tests of operators that one GPU of capability 8.0 runs; those of models load networks for minutes.
FILES = (
    "cross_entropy", "dyt", "embedding", "fused_add_rms_norm", "geglu", "group_norm", "jsd", "kl_div", "layer_norm",
    "mm_int8int2", "poly_norm", "qwen2vl_mrope", "relu_squared", "rms_norm", "rope", "softmax", "sparsemax", "swiglu",
    "tvd",
)  # fmt: skip
#: Of each file: how many tests take longer than the limit, or fail for a reason that is known.
KNOWN: dict[str, int] = {}


def environment(python: Path) -> Path:
    """Return the interpreter of the environment; `python` is that of the torch that it uses."""
    mine = FOLDER / "bin" / "python"
    if not mine.exists():
        subprocess.run([python, "-m", "venv", FOLDER], check=True)
        (site,) = FOLDER.glob("lib/python*/site-packages")
        (torch,) = python.parents[1].glob("lib/python*/site-packages")
        (site / "torch-env.pth").write_text(f"{torch}\n")
    for words in ([*NEEDS], ["--no-deps", f"{PACKAGE}=={VERSION}"]):
        subprocess.run([mine, "-m", "pip", "install", "--quiet", *words], check=True)
    return mine


def sources(python: Path) -> Path:
    """Return the folder of the unpacked source distribution."""
    found = FOLDER / f"{PACKAGE.replace('-', '_')}-{VERSION}"
    if not found.exists():
        command = [python, "-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", ":all:", "--dest", FOLDER]
        subprocess.run([*command, "--no-build-isolation", f"{PACKAGE}=={VERSION}"], check=True)
        (archive,) = FOLDER.glob(f"{found.name}.tar.gz")
        with tarfile.open(archive) as content:
            content.extractall(FOLDER, filter="data")
    return found


def run(python: Path, folder: Path, name: str, limit: int) -> dict[str, int]:
    """Run the tests of a file; return how many passed, failed and the like."""
    command = [python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", "--stream-torch"]
    command += [f"--timeout={limit}", "--tb=line", f"test/transformers/test_{name}.py"]
    env = {**torch_env.settings(), "TRITON_DEFAULT_FP_FUSION": "1"}
    env["PYTHONPATH"] += f":{folder}"
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = done.stdout.strip().splitlines() or ["nothing"]
    for line in lines:
        if line.startswith(("FAILED", "ERROR")):
            print(f"  {line[:160]}", flush=True)
    counts = {
        kind: int(number) for number, kind in re.findall(r"(\d+) (passed|failed|error|skipped|xfailed)", lines[-1])
    }
    return counts if counts else {"error": 1}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--torch", default=torch_env.PINNED, choices=torch_env.SUPPORTED)
    parser.add_argument("--only", choices=FILES, action="append")
    parser.add_argument("--limit", type=int, default=600, help="seconds for one test")
    parser.add_argument("--python", type=Path, help="an environment with torch, instead of one of torch_env.py")
    given = parser.parse_args()
    torch_python = given.python or torch_env.environment(given.torch)
    torch_env.built(torch_python)
    python = environment(torch_python)
    folder = sources(python)
    bad, total = 0, 0
    print(f"{PACKAGE} {VERSION}\n| tests of | passed | failed | skipped | s |\n|---|---|---|---|---|")
    for name in given.only or FILES:
        began = time.monotonic()
        counts = run(python, folder, name, given.limit)
        failed = counts.get("failed", 0) + counts.get("error", 0)
        skipped = counts.get("skipped", 0) + counts.get("xfailed", 0)
        print(
            f"| {name} | {counts.get('passed', 0)} | {failed} | {skipped} | {time.monotonic() - began:.0f} |",
            flush=True,
        )
        bad += max(0, failed - KNOWN.get(name, 0))
        total += counts.get("passed", 0)
    print(f"kernel-judges: {total} passed, {bad} more failed than is known")
    return 1 if bad or not total else 0


if __name__ == "__main__":
    sys.exit(main())
