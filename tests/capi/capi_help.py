"""Compiles C files against halstream.h and loads them."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

import halstream as hs

HERE = Path(__file__).parent


def compiler() -> str:
    """Return the C compiler; the tests need one, as the extension did."""
    for name in (*(sysconfig.get_config_var("CC") or "cc").split()[:1], "cc", "gcc", "clang"):
        if shutil.which(name):
            return name
    raise RuntimeError("there is no C compiler")


def build(source: Path, target: Path, *flags: str) -> Path:
    """Compile a C file, and other files among `flags`, with all warnings as errors."""
    standard = "-std=c++17" if source.suffix == ".cpp" else "-std=c11"
    command = [
        compiler(), standard, "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Wextra", "-Werror", "-fPIC",
        f"-I{hs.get_include()}", f"-I{sysconfig.get_paths()['include']}", *flags, str(source), "-o", str(target),
        "-lpthread",
    ]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    return target


def load(path: Path) -> Any:
    """Import an extension module by its file."""
    name = path.name.partition(".")[0]
    loader = importlib.machinery.ExtensionFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module
