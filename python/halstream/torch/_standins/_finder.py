"""How programs find the stand-ins: a finder of modules and of distributions that yields to every other one."""

from __future__ import annotations

import importlib.machinery
import importlib.metadata
import os
import re
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from .._redirect.patches import Patches, when_imported
from . import _deepspeed, _registry
from ._registry import Standin

__all__ = ["patch"]

#: How the system's loader says that it cannot load a library.
_LIBRARY = re.compile("cannot open shared object file|undefined symbol|Could not load this library|image not found")

#: The tree of stand-ins, laid out as the packages are.
_FOLDER = Path(__file__).parent / "_packages"


def patch(patches: Patches) -> None:
    """Serve the stand-ins that the environment asks for, until the patches are undone.

    Raises
    ------
    RedirectError
        If the environment names a stand-in that does not exist.
    """
    chosen = _registry.chosen()
    if not chosen:
        return
    finder = _Finder(chosen)
    sys.meta_path.insert(0, finder)
    if any(one.name == "deepspeed" for one in chosen):
        when_imported(patches, _deepspeed.changes(patches))

    def undo() -> None:
        sys.meta_path.remove(finder)
        for name, module in list(sys.modules.items()):
            if not _is_standin(name, module):
                continue
            del sys.modules[name]
            parent, _, last = name.rpartition(".")
            if parent in sys.modules and vars(sys.modules[parent]).get(last) is module:
                delattr(sys.modules[parent], last)

    patches.on_undo(undo)


def _is_standin(name: str, module: Any) -> bool:
    """Return True for a module of the tree that was imported under the name of the real one."""
    file = vars(module).get("__file__") if isinstance(module, ModuleType) else None
    return isinstance(file, str) and Path(file).is_relative_to(_FOLDER) and not name.startswith("halstream.")


class _Finder(importlib.metadata.DistributionFinder):
    """Finds a stand-in where no other finder finds the module, or where what it finds cannot be loaded.

    It stands first, since only so it sees what cannot be loaded, and asks the others before it answers.
    """

    def __init__(self, standins: Iterable[Standin]) -> None:
        self._by_module = {name: one for one in standins for name in one.modules}
        self._said: set[str] = set()
        self._asking = threading.local()

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        standin = self._standin(name)
        if standin is None or getattr(self._asking, "name", None) == name:
            return None
        self._asking.name = name
        try:
            found = self._others(name, path, target)
        finally:
            self._asking.name = None
        if found is None:
            return self._served(name, lambda: self._say(standin, name, "is not installed"))
        if isinstance(found.loader, importlib.machinery.ExtensionFileLoader):
            self._stand_in_for(found.loader, standin, name)
        elif name in self._by_module and isinstance(found.loader, importlib.machinery.SourceFileLoader):
            self._stand_in_for_package(found.loader, standin, name)
        return found

    def _standin(self, name: str) -> Standin | None:
        part = name
        while part:
            if part in self._by_module:
                return self._by_module[part]
            part = part.rpartition(".")[0]
        return None

    def _others(self, name: str, path: Any, target: ModuleType | None) -> ModuleSpec | None:
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            found: ModuleSpec | None = find(name, path, target)
            # A folder without __init__.py, such as one that a build has left, is no package.
            if found is not None and found.loader is not None:
                return found
        return None

    def _served(self, name: str, say: Callable[[], None]) -> ModuleSpec | None:
        """Return the spec of a stand-in's module, None if it has no such module."""
        parent = _FOLDER.joinpath(*name.split(".")[:-1])
        spec = importlib.machinery.PathFinder.find_spec(name, [str(parent)])
        if spec is None or not isinstance(spec.loader, importlib.machinery.SourceFileLoader):
            return None

        execute = spec.loader.exec_module

        def executing(module: ModuleType) -> None:
            say()
            execute(module)

        spec.loader.exec_module = executing  # type: ignore[method-assign]
        return spec

    def _stand_in_for(self, loader: Any, standin: Standin, name: str) -> None:
        """Let a compiled module that the system cannot load be replaced."""
        create, execute = loader.create_module, loader.exec_module

        def creating(spec: ModuleSpec) -> Any:
            try:
                return create(spec)
            except ImportError as exc:
                reason = f"cannot be loaded ({exc})"
            served = self._served(name, lambda: self._say(standin, name, reason))
            if served is None or served.loader is None:
                raise ImportError(f"{name} {reason}", name=name)
            module = ModuleType(name)
            loader.exec_module = served.loader.exec_module
            spec.origin = served.origin
            return module

        loader.create_module, loader.exec_module = creating, execute

    def _stand_in_for_package(self, loader: Any, standin: Standin, name: str) -> None:
        """Let a package be replaced that loads libraries as it is imported, and cannot."""
        execute = loader.exec_module

        def executing(module: ModuleType) -> None:
            before = set(sys.modules)
            try:
                execute(module)
                return
            except (ImportError, OSError) as exc:
                text = _of_library(exc, standin.compiled)
                if text is None:
                    raise
                reason = f"cannot be loaded ({text})"
            for one in [one for one in sys.modules if one.startswith(f"{name}.") and one not in before]:
                del sys.modules[one]
            served = self._served(name, lambda: self._say(standin, name, reason))
            if served is None or served.loader is None:
                raise ImportError(f"{name} {reason}", name=name)
            assert module.__spec__ is not None
            places = served.submodule_search_locations
            module.__file__, module.__spec__.submodule_search_locations = served.origin, places
            if places is not None:
                module.__path__ = places
            served.loader.exec_module(module)

        loader.exec_module = executing

    def _say(self, standin: Standin, name: str, reason: str) -> None:
        if standin.name in self._said:
            return
        self._said.add(standin.name)
        print(
            f"halstream: {name} {reason}; a stand-in that computes on torch's operators serves {standin.serves} "
            f"({_registry.VARIABLE}=-{standin.name} leaves it out)",
            file=sys.stderr,
            flush=True,
        )

    # -- distributions --------------------------------------------------------

    def find_distributions(self, context: Any = None) -> Iterator[importlib.metadata.Distribution]:
        """Yield the distributions of stand-ins whose package is not installed, by name or all."""
        wanted = getattr(context, "name", None)
        for standin in dict.fromkeys(self._by_module.values()):
            if not standin.distribution:
                continue
            name, version = standin.distribution
            if (wanted is None or _normal(wanted) == _normal(name)) and not self._installed(name):
                yield _Distribution(name, version, standin.modules[0])

    def _installed(self, name: str) -> bool:
        context = importlib.metadata.DistributionFinder.Context(name=name)
        finders = [getattr(one, "find_distributions", None) for one in sys.meta_path if one is not self]
        return any(next(iter(find(context)), None) is not None for find in finders if find is not None)


class _Distribution(importlib.metadata.Distribution):
    """What `importlib.metadata` tells of a package that a stand-in serves."""

    def __init__(self, name: str, version: str, package: str) -> None:
        self._files = {
            "METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\nSummary: halstream's stand-in\n",
            "top_level.txt": f"{package}\n",
        }

    def read_text(self, filename: str) -> str | None:
        return self._files.get(os.fspath(filename))

    def locate_file(self, path: Any) -> Any:
        return _FOLDER / path


def _of_library(exc: BaseException | None, compiled: tuple[str, ...]) -> str | None:
    """Return the text of the first error in a chain that says that a library cannot be loaded, or is missing."""
    while exc is not None:
        if _LIBRARY.search(str(exc)) or (isinstance(exc, ModuleNotFoundError) and exc.name in compiled):
            return str(exc)
        exc = exc.__cause__ or exc.__context__
    return None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
