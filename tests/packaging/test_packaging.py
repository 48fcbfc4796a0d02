"""What an installation consists of; quick checks only, ``make smoke`` installs the wheel."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from collections.abc import Callable
from email.parser import Parser
from importlib import metadata
from pathlib import Path

import halstream
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "halstream"
MIB = 1 << 20

Child = Callable[..., "subprocess.CompletedProcess[str]"]


def project(pattern: str) -> str:
    """Return what a pattern finds in pyproject.toml (CPython 3.10 cannot parse TOML)."""
    found = re.search(pattern, (ROOT / "pyproject.toml").read_text())
    assert found, pattern
    return found[1]


@pytest.fixture(scope="module")
def wheel() -> zipfile.ZipFile:
    """The wheel of ``make wheel``; skips where there is none of these sources."""
    wheels = sorted((ROOT / "dist").glob("*.whl"))
    if not wheels:
        pytest.skip("there is no wheel in dist/; make wheel builds one")
    newest = max(p.stat().st_mtime for p in sources())
    if wheels[-1].stat().st_mtime < newest:
        pytest.skip("the wheel in dist/ is older than the sources; make wheel builds a new one")
    assert len(wheels) == 1, "one wheel serves every CPython"
    return zipfile.ZipFile(wheels[0])


def sources() -> list[Path]:
    """Return the files of the package that are not made by the build."""
    data = {"py.typed", "names.txt", "signatures.txt", "also.txt", "verify.schema.json"}
    data |= {p.name for folder in ("include", "_checks/template") for p in (PACKAGE / folder).iterdir()}
    return [
        p for p in PACKAGE.rglob("*") if p.is_file() and (p.suffix in {".py", ".pyi", ".cuh", ".h"} or p.name in data)
    ]


def test_the_version_has_one_place() -> None:
    assert project(r'(?m)^version = \{ attr = "([^"]+)" \}') == "halstream.__version__"
    assert metadata.version("halstream") == halstream.__version__


def test_the_extension_has_the_version_of_the_package(child: Child) -> None:
    done = child("from halstream import _halstream as ext; print(ext.pybuild_Version())")
    assert (done.returncode, done.stdout.strip()) == (0, halstream.__version__), done.stderr


def test_metadata() -> None:
    info = metadata.metadata("halstream")
    assert info["Requires-Python"] == ">=3.10"
    assert "Apache" in (info["License-Expression"] or info["License"] or "")
    assert "Typing :: Typed" in (info.get_all("Classifier") or [])
    always = [r for r in metadata.requires("halstream") or [] if "extra ==" not in r]
    assert always == ["numpy"]


def test_build_needs_nothing_but_setuptools() -> None:
    requires = project(r"(?ms)^requires = \[(.*?)\]")
    assert re.findall(r'"([A-Za-z-]+)', requires) == ["setuptools"]


def test_import_is_light(child: Child) -> None:
    done = child(
        """
        import os, sys, threading
        before = os.getcwd()
        import halstream
        heavy = ["numpy", "typer", "rich", "matplotlib", "asyncio", "halstream._halstream"]
        slow = ["ctypes", "dataclasses", "inspect", "json", "logging", "subprocess", "sysconfig", "tempfile"]
        parts = ["torch", "paddle", "mindspore", "cupy", "cuda", "acl"]
        parts += ["_core._graph", "_notebook", "_kernel", "_memory"]
        print([name for name in heavy + slow + ["halstream." + p for p in parts] if name in sys.modules])
        print(threading.active_count(), os.getcwd() == before)
        """
    )
    assert (done.returncode, done.stdout.split("\n")[:2]) == (0, ["[]", "1 True"]), done.stderr


def test_an_import_brings_few_modules(child: Child) -> None:
    done = child("import sys, typing; before = set(sys.modules); import halstream; print(*set(sys.modules) - before)")
    assert done.returncode == 0, done.stderr
    found = done.stdout.split()
    own = [name for name in found if name.startswith("halstream")]
    assert len(own) <= 30, sorted(own)  # each is a file to be found, read and run
    known = {"__future__", "_contextvars", "_weakrefset", "atexit", "contextvars", "importlib", "math", "threading"}
    known |= {
        "contextlib",
        "annotationlib",
        "_ast",
        "ast",
        "enum",
    }  # typing imports them when they are needed, from 3.14 on
    known |= {"_interpreters", "_xxsubinterpreters", "warnings", "weakref", "zlib", "itertools", "_struct", "struct"}
    assert sorted({name.partition(".")[0] for name in set(found) - set(own)} - known) == []


def test_the_import_of_a_dialect_is_light(child: Child) -> None:
    done = child(
        """
        import sys
        from halstream.torch import cuda
        print([name for name in ("numpy", "importlib.resources", "tempfile", "zipfile") if name in sys.modules])
        """
    )
    assert (done.returncode, done.stdout.strip()) == (0, "[]"), done.stderr


def test_a_dialect_is_imported_at_its_first_use(child: Child) -> None:
    done = child(
        """
        import halstream
        print(halstream.torch.cuda.is_available(), halstream.backend())
        """
    )
    assert (done.returncode, done.stdout.strip()) == (0, "True host"), done.stderr


@pytest.mark.parametrize("name", ["cuda", "ascend"])
def test_an_absent_backend_is_named(child: Child, name: str) -> None:
    done = child(
        """
        import halstream
        try:
            halstream.Stream()
        except halstream.BackendAbsentError as exc:
            print(exc)
        """,
        env={"HALSTREAM_BACKEND": name},
    )
    assert done.returncode == 0, done.stderr
    assert name in done.stdout and "HALSTREAM_BACKEND=host" in done.stdout


EXTENSIONS = ("_halstream", "_core/_handles")


def extension(name: str) -> Path:
    """Return one of the extensions that this Python imports."""
    package = Path(halstream.__file__).parent
    found = sorted(package.glob(f"{name}*.so"))
    # A free-threaded CPython has no stable interface.
    ending = sysconfig.get_config_var("EXT_SUFFIX") if sysconfig.get_config_var("Py_GIL_DISABLED") else ".abi3.so"
    assert [str(p.relative_to(package)) for p in found] == [name + ending]
    return found[0]


def readelf(name: str, *options: str) -> str:
    """Return what readelf says about an extension."""
    if sys.platform != "linux" or shutil.which("readelf") is None:
        pytest.skip("readelf is needed")
    done = subprocess.run(
        ["readelf", "--wide", *options, str(extension(name))], capture_output=True, text=True, check=True
    )
    return done.stdout


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_needs_libc_only(name: str) -> None:
    found = readelf(name, "--dynamic")
    assert "(SYMTAB)" in found
    needed = re.findall(r"\(NEEDED\).*\[(.+)\]", found)
    # Its mathematics, for kernels, and the loader itself: where thread-local variables are found.
    own = ("libc.so.6", "libm.so.6")
    assert [name for name in needed if name not in own and not name.startswith("ld-linux")] == []


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_needs_no_newer_glibc(name: str) -> None:
    versions = re.findall(r"GLIBC_(\d+)\.(\d+)", readelf(name, "--version-info"))
    assert [f"{a}.{b}" for a, b in versions if (int(a), int(b)) > (2, 34)] == []


@pytest.mark.parametrize("name", EXTENSIONS)
def test_extension_gives_one_name(name: str) -> None:
    names = re.findall(r"(?m)GLOBAL\s+DEFAULT\s+\d+\s+(PyInit_\w+)$", readelf(name, "--dyn-syms"))
    assert names == [f"PyInit_{name.rpartition('/')[2]}"]


def test_wheel_has_the_package_and_nothing_else(wheel: zipfile.ZipFile) -> None:
    names = {name for name in wheel.namelist() if ".dist-info/" not in name}
    wanted = {f"halstream/{p.relative_to(PACKAGE)}" for p in sources()}
    # The C++ sources of the module for the real torch, which is compiled where torch is.
    cpp = [p for p in (ROOT / "torch").rglob("*") if p.suffix in {".cpp", ".h", ".inc"}]
    assert cpp
    wanted |= {f"halstream/torch/_source/{p.relative_to(ROOT / 'torch')}" for p in cpp}
    # The sources of the plug-in for the real Paddle, likewise.
    plugin = [p for p in (ROOT / "paddle").rglob("*") if p.suffix in {".c", ".cpp", ".h", ".txt"}]
    assert plugin
    wanted |= {f"halstream/paddle/_source/{p.relative_to(ROOT / 'paddle')}" for p in plugin}
    # The CUDA driver on the host device, and what is in front of NVIDIA's compilers.
    fronts = [f"front/{name}.so.{version}" for name in ("libnvrtc", "libnvJitLink") for version in (12, 13)]
    wanted |= {f"halstream/_driver/{name}" for name in ("libcuda.so.1", *fronts)}
    assert names == wanted | {f"halstream/{name}.abi3.so" for name in EXTENSIONS}
    assert {"halstream/py.typed", "halstream/_halstream.pyi", "halstream/_native/_functions.pyi"} <= names
    assert "halstream/include/halstream.h" in names


def test_wheel_serves_every_cpython_from_3_10(wheel: zipfile.ZipFile) -> None:
    name = Path(str(wheel.filename)).name
    assert re.fullmatch(r"halstream-[\d.]+-cp310-abi3-\w+\.whl", name)
    assert Path(str(wheel.filename)).stat().st_size <= 6 * MIB
    inside = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    info = Parser().parsestr(wheel.read(inside).decode())
    assert info["Version"] == halstream.__version__
    assert any(n.endswith("LICENSE") for n in wheel.namelist())
