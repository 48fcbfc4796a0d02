"""torch.distributed for CUDA tensors: NCCL's backend, and gloo's with CUDA tensors, over gloo on the CPU."""

from __future__ import annotations

import copy
import datetime
import zlib
from collections.abc import Callable
from types import ModuleType, SimpleNamespace
from typing import Any

from ..._stalls import peers as _peers
from .errors import NotBuiltError
from .patches import Patches

__all__ = ["changes"]

_LIMIT = datetime.timedelta(minutes=10)  #: NCCL's default
_VERSION = (2, 27, 5)  #: of NCCL, as programs see it
_NAMES = ("ProcessGroupNCCL", "ProcessGroupNCCL2", "ProcessGroupNCCLLazy")


def changes(torch: Any, module: Any, patches: Patches) -> dict[str, Callable[[ModuleType], None]]:
    """Return what to do with torch.distributed's modules once they are imported."""
    major, minor, patch = _VERSION
    patches.set(torch._C, "_nccl_version", lambda: major << 32 | minor << 16 | patch)
    patches.set(torch._C, "_nccl_version_suffix", lambda: b"")

    def change(distributed: ModuleType) -> None:
        native = getattr(torch._C, "_distributed_c10d", None)
        if native is None or not hasattr(native, "ProcessGroupGloo"):
            return
        over_gloo, nccl = module.process_group_classes()
        _peers.serve(module)
        _complete(nccl, native, patches)
        _let_copy(native.Backend.Options, patches)
        owners = [native, distributed, torch.distributed]
        for name in _NAMES if hasattr(native, _NAMES[1]) else _NAMES[:1]:
            for owner in owners:
                patches.set(owner, name, nccl)
        _register(distributed, patches)
        _carry_gloo(torch, native, over_gloo, patches)
        # Groups that share a communicator with their parent exist in NCCL only; split_group is the backend's own.
        if hasattr(distributed, "_get_split_source"):
            patches.set(distributed, "_get_split_source", lambda *args, **options: None)
        if hasattr(native, "_hash_tensors"):
            patches.set(native, "_hash_tensors", _hash)

    return {"torch.distributed.distributed_c10d": change}


def _hash(tensors: list[Any]) -> int:
    """Return a number that is the same for the same bytes on all ranks, for debug texts; torch's own calls CUDA."""
    value = 0
    for tensor in tensors:
        value = zlib.crc32(bytes(tensor.detach().cpu().untyped_storage().tolist()), value)
    return value


def _complete(nccl: Any, native: ModuleType, patches: Patches) -> None:
    """Give the class what programs call of NCCL's process group besides the collectives."""
    options = native.ProcessGroupNCCL.Options if hasattr(native, "ProcessGroupNCCL") else _Options
    if options is getattr(nccl, "Options", None):
        return
    construct = nccl.__init__

    def init(
        self: Any, store: Any, rank: int, size: int, options: Any = None, device_id: Any = None, *, timeout: Any = None
    ) -> None:
        if isinstance(options, datetime.timedelta):
            options, timeout = None, options
        limit = timeout or getattr(options, "_timeout", _LIMIT)
        inner = _gloo(native, store, rank, size, limit)
        construct(self, inner, "nccl", limit, bool(getattr(options, "is_high_priority_stream", False)), False)
        self._name_ranks(list(getattr(options, "global_ranks_in_group", ())))

    def described(self: Any) -> Any:
        given = options()
        given._timeout = self._limit
        given.is_high_priority_stream = self._high_priority
        return given

    def no_pools(self: Any, *args: Any) -> None:
        raise NotBuiltError("memory pools of NCCL are not built in halstream: leave register_mem_pool out")

    added = {
        "__init__": init,
        "__module__": "torch.distributed.distributed_c10d",
        "Options": options,
        "options": property(described),
        "NCCLConfig": getattr(getattr(native, "ProcessGroupNCCL", None), "NCCLConfig", SimpleNamespace),
        "register_mem_pool": no_pools,
        "deregister_mem_pool": no_pools,
        "_is_initialized": lambda self: True,
        "_group_start": lambda self: None,
        "_group_end": lambda self: None,
        "_set_enable_nan_check": lambda self, enabled: None,
        "_add_ephemeral_timeout": lambda self, timeout: None,
        "perform_nocolor_split": lambda self, device: None,
        "get_build_nccl_version": staticmethod(lambda: _VERSION),
        "get_runtime_nccl_version": staticmethod(lambda: _VERSION),
    }
    if not hasattr(nccl, "_set_default_timeout"):
        added["_set_default_timeout"] = lambda self, timeout: None
    for name, value in added.items():
        patches.set(nccl, name, value)


def _let_copy(options: Any, patches: Patches) -> None:
    """Give options of a backend the copies that `split_group` makes; torch 2.13 has them for NCCL's own only."""
    if hasattr(options, "__deepcopy__"):
        return

    def copied(self: Any, memo: Any) -> Any:
        if type(self) is not options:
            raise TypeError(f"cannot copy {type(self).__name__}")
        return options(self.backend, self._timeout)

    patches.set(options, "__deepcopy__", copied)


def _gloo(native: ModuleType, store: Any, rank: int, size: int, limit: datetime.timedelta) -> Any:
    """Return gloo's process group below one for CUDA tensors."""
    return native.ProcessGroupGloo(native.PrefixStore("halstream/", store), rank, size, timeout=limit)


class _Options:
    """ProcessGroupNCCL.Options of builds of torch without NCCL."""

    def __init__(self, is_high_priority_stream: bool = False) -> None:
        self.is_high_priority_stream = is_high_priority_stream
        self.backend = "nccl"
        self.config = SimpleNamespace()
        self.enable_reconfigure = False
        self.global_ranks_in_group: list[int] = []
        self.group_name = ""
        self.lazy_init = False
        self.split_color = -2
        self.split_from: Any = None
        self.use_pg_for_symm_mem_rendezvous = False
        self._timeout = _LIMIT

    def __copy__(self) -> _Options:
        new = _Options()
        vars(new).update(vars(self))
        return new

    def __deepcopy__(self, memo: Any) -> _Options:
        return copy.copy(self)


def _register(distributed: Any, patches: Patches) -> None:
    """Let builds of torch without NCCL know the backend."""
    if distributed.is_nccl_available():
        return
    patches.set(distributed, "_NCCL_AVAILABLE", True)
    plugins = getattr(distributed.Backend, "_plugins", {})
    register = getattr(distributed, "_register_builtin_nccl_backend", None)
    if register is not None and "NCCL" not in plugins:
        register()
    if getattr(distributed, "default_pg_nccl_timeout", _LIMIT) is None:
        patches.set(distributed, "default_pg_nccl_timeout", _LIMIT)


def _carry_gloo(torch: Any, native: Any, over_gloo: Any, patches: Patches) -> None:
    """Let a group of gloo's take CUDA tensors: its own code for them would call CUDA."""
    group = native.ProcessGroup
    register = group._register_backend

    def register_backend(self: Any, device: Any, backend_type: Any, backend: Any = None) -> None:
        if torch.device(device).type == "cuda" and backend is not None and not isinstance(backend, over_gloo):
            inner = getattr(backend, "wrapped_pg", backend)
            if isinstance(inner, native.ProcessGroupGloo):
                limit = getattr(getattr(inner, "options", None), "_timeout", datetime.timedelta(minutes=30))
                backend = over_gloo(backend, "gloo", limit, False, True)
                backend_type = group.BackendType.CUSTOM
        register(self, device, backend_type, backend)

    patches.set(group, "_register_backend", register_backend)
