"""The modules whose forward runs, for reports: ``layer.3``, while a sanitizer is on."""

from __future__ import annotations

import threading
import weakref
from typing import Any

from .patches import Patches

__all__ = ["RunningModules"]


class _Thread(threading.local):
    """The modules that run on a thread, the outermost first."""

    def __init__(self) -> None:
        self.running: list[Any] = []


class RunningModules:
    """Tells the module of each thread in which `torch.nn.Module` it is, while it is switched on."""

    def __init__(self, torch: Any, module: Any) -> None:
        self._torch = torch
        self._tell = module.running_module
        self._hooks: list[Any] = []
        self._patches = Patches()
        self._threads = _Thread()
        self._paths: weakref.WeakKeyDictionary[Any, dict[int, tuple[Any, str]]] = weakref.WeakKeyDictionary()

    def switch(self, on: bool) -> None:
        """Begin or end following the modules."""
        if on == bool(self._hooks):
            return
        if on:
            modules = self._torch.nn.modules.module
            self._hide(modules)
            self._hooks = [
                modules.register_module_forward_pre_hook(self._enter),
                modules.register_module_forward_hook(self._leave, always_call=True),
            ]
            return
        while self._hooks:
            self._hooks.pop().remove()
        self._patches.undo()

    def _hide(self, modules: Any) -> None:
        """Let torch.compile, which warns where hooks of all modules are, not see these two."""

        def others() -> bool:
            backward = modules._global_backward_pre_hooks or modules._global_backward_hooks
            return bool(
                backward or len(modules._global_forward_pre_hooks) > 1 or len(modules._global_forward_hooks) > 1
            )

        self._patches.set(modules, "_has_any_global_hook", others)

    def _enter(self, module: Any, *rest: Any) -> None:
        if self._torch.compiler.is_compiling():
            return  # what torch.compile makes of modules has no calls of them
        running = self._threads.running
        running.append(module)
        self._tell(self._path(running[0], module))

    def _leave(self, module: Any, *rest: Any) -> None:
        if self._torch.compiler.is_compiling():
            return
        running = self._threads.running
        # Modules inside may have left no trace: the hooks were switched on while they ran.
        for place in reversed(range(len(running))):
            if running[place] is module:
                del running[place:]
                break
        self._tell(self._path(running[0], running[-1]) if running else "")

    def _path(self, root: Any, module: Any) -> str:
        """Return the path of a module in the outermost one that runs, whose own path is its class."""
        if module is root:
            return type(root).__name__
        known = self._paths.get(root, {}).get(id(module))
        if known is None or known[0]() is not module:
            paths = {id(one): (weakref.ref(one), path) for path, one in root.named_modules()}
            self._paths[root] = paths
            known = paths.setdefault(id(module), (weakref.ref(module), type(module).__name__))
        return known[1] or type(root).__name__
