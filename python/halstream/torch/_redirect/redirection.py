"""`redirect`: torch's CUDA device becomes halstream's host device."""

from __future__ import annotations

import atexit
import os
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any

from ... import _sites
from ..._core import _backend, _interop
from ..._core._device import device_count
from . import backward_order, fusers, numbers, wheel
from .ending import wait_for_autograd
from .errors import RedirectError
from .kernels import Kernels, serve_libraries
from .patches import Patches, when_imported
from .properties import identity
from .sources import MODULE

__all__ = ["Redirection", "redirect", "register_kernel"]


class Redirection:
    """What `redirect` gives: the names that are replaced, until `undo` or the end of the ``with`` block.

    Attributes
    ----------
    already : bool
        True if torch was redirected when `redirect` was called; `undo` does nothing then.
    """

    def __init__(self, patches: Patches, already: bool) -> None:
        self._patches = patches
        self.already = already

    def undo(self) -> None:
        """Give torch.cuda its own names back.

        The device type itself stays halstream's until the process ends: tensors on
        it can still be used, and another `redirect` brings the names back at once.
        """
        if self.already or _process.redirection is not self:
            return
        _sites.real_torch.declaring(None)
        self._patches.undo()
        _sites.real_torch.dialect = ""
        _sites.real_torch.parameters = list
        _sites.real_torch.stands_for()
        _sites.real_torch.changed()
        _process.redirection = None

    def __enter__(self) -> Redirection:
        return self

    def __exit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.undo()

    def __repr__(self) -> str:
        state = "in force" if _process.redirection is not None else "undone"
        return f"<halstream.torch.Redirection: {state}>"


class _Process:
    """What holds once in a process."""

    redirection: Redirection | None = None
    pid = 0  #: of the process that took the device type over, 0 before

    def __init__(self) -> None:
        self.kernels = Kernels()


_process = _Process()


def redirect(*, instead_of_gpu: bool = False) -> Redirection:
    """Let the real torch run its CUDA programs on halstream's host device.

    From now on `torch.cuda` is available, tensors on ``'cuda'`` live in halstream's
    memory, and every operator runs on the CPU in the order of its stream. CPU
    tensors are not concerned. The C++ module for the installed torch is compiled
    at the first use on a machine, or ahead by ``halstream build-torch``.

    Parameters
    ----------
    instead_of_gpu : bool
        Hide a GPU that this torch could use, which is refused otherwise; so does the
        environment variable ``HALSTREAM_TORCH_INSTEAD_OF_GPU=1``.

    Returns
    -------
    Redirection
        Undone by its `undo`, or at the end of ``with redirect():``.

    Raises
    ------
    RedirectError
        If it is not possible in this process; the text says why and what to do.
    RuntimeError
        torch's own, in a process forked from one that had used the runtime.

    Notes
    -----
    Call it before the first use of `torch.cuda`; ``import halstream.torch.cuda_on_host``
    does it as well. A second call changes nothing and says so by `Redirection.already`.

    Examples
    --------
    >>> import halstream.torch
    >>> halstream.torch.redirect()  # doctest: +SKIP
    <halstream.torch.Redirection: in force>
    >>> import torch  # doctest: +SKIP
    >>> (torch.ones(4, device="cuda") * 2).sum().item()  # doctest: +SKIP
    8.0
    """
    wheel.refuse_fork()
    if _process.redirection is not None:
        return Redirection(Patches(), already=True)
    torch = wheel.installed()
    if not _process.pid:
        wheel.refuse_used(torch)
        wheel.refuse_gpu(torch, instead_of_gpu)
        _use_host()
    from .._standins import _finder as standins
    from . import (
        distributed,
        host_accesses,
        module_names,
        moves,
        parallel,
        parameters,
        processes,
        rpc,
        running,
        runtime_names,
        storages,
    )
    from . import module as _module

    module = _module.load(torch)
    if not _process.pid:
        _interop.open_backend()
        module.install(_module.api())
        module.name_devices([f"GPU-{identity(i)}" for i in range(device_count())])
        atexit.register(module.finish)
        atexit.register(wait_for_autograd)  # runs before it
        os.register_at_fork(
            before=module.before_fork,
            after_in_parent=module.after_fork_in_parent,
            after_in_child=module.after_fork_in_child,
        )
        _process.pid = os.getpid()
    patches = Patches()
    try:
        runtime_names.patch(torch, module, patches)
        module_names.patch(torch, module, patches, _process.kernels)
        storages.patch(torch, module, patches)
        processes.patch(torch, module, patches)
        parallel.patch(torch, patches)
        moves.patch(torch, patches)
        fusers.patch(torch, patches)
        serve_libraries(torch, module, patches)
        when_imported(patches, distributed.changes(torch, module, patches))
        when_imported(patches, rpc.changes(patches))
        standins.patch(patches)
    except BaseException:
        patches.undo()
        raise
    _sites.real_torch.dialect = "torch.cuda"
    _sites.real_torch.parameters = parameters.names
    _sites.real_torch.stands_for(*numbers.of(torch, module), module.runtime_stream)
    _sites.real_torch.changed()
    accesses, modules = host_accesses.HostAccesses(torch, module), running.RunningModules(torch, module)
    passes = backward_order.BackwardOrder(torch, module)

    def watch(on: bool) -> None:
        accesses.switch(on)
        modules.switch(on)
        passes.switch(on)

    _sites.real_torch.declaring(watch)
    _process.redirection = Redirection(patches, already=False)
    return _process.redirection


def _use_host() -> None:
    """Choose the host backend, unless the program uses another one already.

    Raises
    ------
    RedirectError
        If it does.
    """
    if _interop.initialized() and _interop.backend_name() != "host":
        raise RedirectError(
            f"the backend {_interop.backend_name()!r} is in use, and torch's operators run on the host's memory only; "
            "call halstream.use_backend('host') first"
        )
    chosen = os.environ.get("HALSTREAM_BACKEND", "auto")
    if chosen not in ("auto", "host", ""):
        raise RedirectError(
            f"HALSTREAM_BACKEND is {chosen!r}, and torch's operators run on the host's memory only; leave it out or "
            "set it to 'host'"
        )
    if not _interop.initialized():
        _backend.change("host")


def redirected() -> bool:
    """Return True while torch is redirected."""
    return _process.redirection is not None


def register_kernel(name: str, function: Callable[..., Any]) -> None:
    """Give a kernel that halstream cannot run a function that does the same on the CPU.

    Parameters
    ----------
    name : str
        ``"mylib::scale"`` or ``"mylib::scale.out"`` for an operator of a library;
        ``"my_extension.scale"`` for a function of an extension with CUDA sources, which
        `torch.utils.cpp_extension` loads or the program imports; the name of the Python
        function for a Triton kernel.
    function : callable
        For an operator it takes what the operator takes, with CPU tensors in place of the
        CUDA ones, and returns what it returns; the host waits for the stream first. For a
        function of an extension it takes what that takes, and for a Triton kernel the grid
        and what the kernel takes, and works on the CUDA tensors by operators of PyTorch.

    Raises
    ------
    RedirectError
        If torch is not redirected, or no library defines the operator.
    """
    if not redirected():
        raise RedirectError("torch is not redirected: call halstream.torch.redirect() before register_kernel")
    if not callable(function):
        raise TypeError(f"register_kernel takes a function, not {type(function).__name__}")
    if "::" in name:
        _process.kernels.operator(sys.modules["torch"], sys.modules[MODULE], name, function)
        return
    extension, _, last = name.rpartition(".")
    if extension:
        _process.kernels.extensions.setdefault(extension, {})[last] = function
    else:
        _process.kernels.triton[name] = function
