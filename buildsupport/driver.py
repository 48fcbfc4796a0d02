"""Compiles libcuda.so.1, the CUDA runtime on it, and the libraries in front of NVIDIA's compilers, into a folder.

Usage: python buildsupport/driver.py FOLDER

They are C without the runtime: see libcuda/shim and libcuda/front. The names of the driver's functions come from the
table in Go, and the errors of the CUDA runtime from that of the dialects.
"""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "libcuda"
#: NVIDIA's libraries that have one in front -> its source, and the versions in their names.
FRONTS = {"libnvrtc": "nvrtc.c", "libnvJitLink": "nvjitlink.c"}
VERSIONS = (12, 13)
#: The errors of the CUDA runtime, by their numbers.
ERRORS = ROOT / "python" / "halstream" / "_dialects" / "_cuda_status.py"


def names(go: str) -> str:
    """Return the list of the driver's functions, as C includes it."""
    command = [go, "run", "./libcuda/names"]
    own = {"GOOS": "", "GOARCH": "", "CC": "", "CGO_ENABLED": "1"}  # it runs on this machine
    done = subprocess.run(command, cwd=ROOT, env={**os.environ, **own}, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{done.stderr}\nhalstream: this command failed, see above: {' '.join(command)}")
    return done.stdout


def compile_driver(folder: Path, listed: str, compiler: str) -> None:
    """Compile the libraries into a folder, given the list of functions."""
    (folder / "front").mkdir(parents=True, exist_ok=True)
    includes = {"names.h": listed, "errors.h": _errors()}
    for name, text in includes.items():
        (folder / name).write_text(text)
    flags = ["-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared", "-fvisibility=hidden"]

    def build(source: Path, target: Path, *more: str) -> None:
        soname = ["-Wl,-soname," + target.name, "-Wl,-z,nodelete", f"-I{folder}"]
        new = target.with_name(target.name + ".new")
        command = [*compiler.split(), *flags, *soname, "-o", str(new), str(source), *more, "-ldl"]
        if subprocess.run(command).returncode:
            raise SystemExit(f"halstream: this command failed, see above: {' '.join(command)}")
        os.replace(new, target)

    build(SOURCE / "shim" / "shim.c", folder / "libcuda.so.1")
    for library, source in FRONTS.items():
        for version in VERSIONS:
            build(SOURCE / "front" / source, folder / "front" / f"{library}.so.{version}")
    symbols = f"-Wl,--version-script={SOURCE / 'front' / 'cudart.map'}"
    build(SOURCE / "front" / "cudart.c", folder / "front" / "libhalstream_cudart.so", symbols, "-pthread")
    for name in includes:
        (folder / name).unlink()


def _errors() -> str:
    """Return the errors of the CUDA runtime, as C includes them."""
    known: dict[int, tuple[str, str]] = runpy.run_path(str(ERRORS))["STATUSES"]
    return "".join(f"ERROR({code}, {json.dumps(name)}, {json.dumps(text)})\n" for code, (name, text) in known.items())


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from build_backend import find_c_compiler, find_go, no_go

    go = find_go()
    if go is None:
        raise SystemExit(no_go())
    compile_driver(Path(sys.argv[1]).resolve(), names(go), find_c_compiler())


if __name__ == "__main__":
    main()
