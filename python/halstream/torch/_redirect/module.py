"""The C++ module: a ready-made one, one that was compiled before, or one that is compiled now."""

from __future__ import annotations

import hashlib
import importlib
import importlib.machinery
import importlib.util
import json
import sys
import time
from pathlib import Path
from typing import Any

import halstream

from . import cache, compiling
from . import sources as _sources
from .errors import RedirectError
from .progress import Progress
from .sources import MODULE, Build, Compiler

__all__ = ["build", "load", "loaded"]

#: The package with a ready-made module.
PREBUILT = "halstream_torch"


def _say(text: str) -> None:
    print(f"halstream: {text}", file=sys.stderr, flush=True)


def include() -> Path:
    """Return the folder of ``halstream.h``."""
    return Path(halstream.get_include())


def api() -> Any:
    """Return the capsule with the functions of the core."""
    return halstream.get_api()


def loaded() -> Any:
    """Return the module if this process has loaded it, else None."""
    return sys.modules.get(MODULE)


def load(torch: Any) -> Any:
    """Return the module for this torch, compiled if there is none.

    Raises
    ------
    RedirectError
        If it cannot be built, or not be loaded; the text says what to install.
    """
    if (found := loaded()) is not None:
        return found
    path, _ = build(torch)
    loader = importlib.machinery.ExtensionFileLoader(MODULE, str(path))
    spec = importlib.util.spec_from_file_location(MODULE, path, loader=loader)
    assert spec is not None
    try:
        module = importlib.util.module_from_spec(spec)
        loader.exec_module(module)
    except ImportError as exc:
        raise RedirectError(f"the module for torch {torch.__version__} cannot be loaded: {exc}") from None
    sys.modules[MODULE] = module
    return module


def build(torch: Any) -> tuple[Path, bool]:
    """Return where the module for this torch is, and whether it was compiled by this call.

    Raises
    ------
    RedirectError
        As `load`.
    """
    where = include()
    wanted = _sources.current(torch, where, compiling.flags(torch))
    ready = _prebuilt(wanted)
    if ready is not None:
        return ready, False
    compiler = _sources.find_compiler()
    found = cache.find(wanted, compiler and compiler.identity)
    if found is not None:
        return found, False
    if compiler is None:
        raise RedirectError(
            f"there is no module for torch {torch.__version__} yet, and no C++ compiler (CXX, g++, clang++) to build "
            "it with; install one (Debian, Ubuntu: `apt install g++`; macOS: `xcode-select --install`), or a "
            f"ready-made module of this torch: a wheel halstream-torch {wanted.halstream}+torch{_plain(wanted)}"
        )
    compiling.check_headers()
    with cache.locked(f"{wanted.key}-{compiler.identity}", lambda: _say("another process is building it; waiting")):
        found = cache.find(wanted, compiler.identity)
        return (found, False) if found is not None else (_compile(torch, wanted, compiler, where), True)


def _compile(torch: Any, wanted: Build, compiler: Compiler, where: Path) -> Path:
    name = Path(compiler.command[0]).name
    _say(f"building the module for torch {torch.__version__} with {name}, once; this takes a minute or two")
    began = time.monotonic()
    with Progress("compiling") as progress:
        path = cache.store(
            wanted,
            compiler.identity,
            lambda work: compiling.compile_module(torch, compiler, where, work, progress),
        )
    _say(f"built in {time.monotonic() - began:.0f} s: {path}")
    return path


def _prebuilt(wanted: Build) -> Path | None:
    """Return the module of the package halstream-torch if it is installed and fits."""
    spec = importlib.util.find_spec(PREBUILT)
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = Path(next(iter(spec.submodule_search_locations)))
    try:
        about = json.loads((folder / "about.json").read_text())
        fits, path = Build(*about["build"]), folder / f"{MODULE}.so"
        whole = hashlib.sha256(path.read_bytes()).hexdigest() == about["sha256"]
    except (OSError, ValueError, KeyError, TypeError):
        whole = False
    if not whole:
        _say(f"the package halstream-torch in {folder} is damaged; it is not used")
        return None
    if fits == wanted:
        return path
    if fits[:3] != wanted[:3]:
        _say(
            f"the installed halstream-torch is for halstream {fits.halstream}, torch {torch_version(fits)} "
            f"and {fits.python}, not for halstream {wanted.halstream}, torch {torch_version(wanted)} and "
            f"{wanted.python}; it is not used"
        )
    else:
        _say("the installed halstream-torch was built from other sources of halstream; it is not used")
    return None


def _plain(one: Build) -> str:
    return torch_version(one).partition("+")[0]


def torch_version(one: Build) -> str:
    """Return the version of torch that a build fits."""
    return one.torch.partition("/")[0]
