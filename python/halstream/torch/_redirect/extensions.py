"""Extensions with CUDA sources: compiled where there is nvcc, else modules of functions that the program gives."""

from __future__ import annotations

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable
from types import ModuleType
from typing import Any

from .errors import NotBuiltError
from .kernels import ExtensionKernels
from .nvcc import compiling, find_toolkit
from .patches import Patches

__all__ = ["changes", "patch"]

_INSTALL = "Install nvcc (`pip install nvidia-cuda-nvcc` of torch's version of CUDA, or a CUDA toolkit)"


def patch(patches: Patches, given: ExtensionKernels) -> None:
    """Let an extension that is not installed be imported once functions are given for it."""
    finder = _Finder(given)
    sys.meta_path.append(finder)  # asked last
    patches.on_undo(lambda: sys.meta_path.remove(finder))


def changes(
    torch: Any, module: Any, patches: Patches, given: ExtensionKernels
) -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do with torch.utils.cpp_extension once it is imported.

    An extension is compiled unless the program has given functions for it, or there is no nvcc.
    """

    def change(extension: ModuleType) -> None:
        load, inline = extension.load, extension.load_inline

        def built(name: Any, source: str, options: dict[str, Any], load: Callable[[], Any]) -> Any:
            toolkit = None if name in given or options.get("is_standalone") else find_toolkit(torch, extension)
            if toolkit is None:
                return _module(given, name, source, options)
            with compiling(torch, module, extension, toolkit):
                return load()

        @functools.wraps(load)
        def checked_load(name: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            paths = [sources] if isinstance(sources, str) else list(sources)
            found = next((str(one) for one in paths if str(one).endswith((".cu", ".cuh"))), None)
            if found is None:
                return load(name, sources, *args, **kwargs)
            return built(name, found, kwargs, lambda: load(name, sources, *args, **kwargs))

        @functools.wraps(inline)
        def checked_inline(name: Any, cpp_sources: Any, cuda_sources: Any = None, *args: Any, **kwargs: Any) -> Any:
            if not cuda_sources:
                return inline(name, cpp_sources, cuda_sources, *args, **kwargs)
            return built(name, "cuda_sources", kwargs, lambda: inline(name, cpp_sources, cuda_sources, *args, **kwargs))

        patches.set(extension, "load", checked_load)
        patches.set(extension, "load_inline", checked_inline)

    return {"torch.utils.cpp_extension": change}


def _module(given: ExtensionKernels, name: str, source: str, options: dict[str, Any]) -> ModuleType:
    if options.get("is_python_module", True) and not options.get("is_standalone", False):
        return _Extension(given, name, source)
    raise NotBuiltError(
        f"halstream cannot compile CUDA C++ without nvcc: {source} of the extension {name!r}, which is no Python "
        f"module. {_INSTALL}, or define its operators with torch.library.define, and give each a CPU version with "
        "halstream.torch.register_kernel(name, function)"
    )


class _Extension(ModuleType):
    """A module with every name: a function that is given, or one whose call says how to give it."""

    def __init__(self, given: ExtensionKernels, name: str, source: str) -> None:
        super().__init__(name)
        vars(self).update(_given=given, _source=source)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name.startswith("__"):
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")

        extension, source, given = self.__name__, vars(self)["_source"], vars(self)["_given"]

        def call(*args: Any, **kwargs: Any) -> Any:
            function = given.get(extension, {}).get(name)
            if function is None:
                raise NotBuiltError(
                    f"there is no function for {name} of {source} of the extension {extension!r}, which was not "
                    f"compiled. {_INSTALL}, or give a version of {name} on PyTorch's operators with "
                    f"halstream.torch.register_kernel('{extension}.{name}', function)"
                )
            return function(*args, **kwargs)

        call.__name__ = call.__qualname__ = name
        return call


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the extensions for which there are functions."""

    def __init__(self, given: ExtensionKernels) -> None:
        self._given = given

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name in self._given else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return _Extension(self._given, spec.name, "the library")

    def exec_module(self, module: ModuleType) -> None:
        """Leave the module as it was made."""
