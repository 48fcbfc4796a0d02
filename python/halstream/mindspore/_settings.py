"""Settings of mindspore.runtime 2.10 that choose nothing here, and memory pools of the program."""

from __future__ import annotations

from typing import Any, NoReturn

from .._errors import NotSupportedError
from .._runtime import runtime

# What was set; mindspore lets each be set once.
_set: set[str] = runtime.keep("mindspore's settings", set())


def forget() -> None:
    """Clear the settings, so that they can be made again (tests)."""
    _set.clear()


def _once(name: str, text: str) -> None:
    if name in _set:
        raise RuntimeError(text)
    _set.add(name)


def _check(name: str, value: object, kind: type) -> None:
    if not isinstance(value, kind):
        raise TypeError(f"The parameter '{name}' must be {kind}, but got {type(value)}")


def dispatch_threads_num(threads_num: int) -> None:
    """`mindspore.runtime.dispatch_threads_num` of 2.10: accepted once, without effect."""
    _check("threads_num", threads_num, int)
    if isinstance(threads_num, bool) or threads_num < 1:
        raise (TypeError if isinstance(threads_num, bool) else ValueError)(
            f"The 'threads_num' must be int and must > 0, but got '{threads_num}' "
            f"with type '{type(threads_num).__name__}'."
        )
    _once("dispatch_threads_num", "The 'dispatch_threads_num' can not be set repeatedly.")


def set_cpu_affinity(
    enable_affinity: bool,
    affinity_cpu_list: Any = None,
    module_to_cpu_dict: Any = None,
    bind_file: Any = None,
) -> None:
    """`mindspore.runtime.set_cpu_affinity` of 2.10: accepted once, without effect."""
    _once("set_cpu_affinity", "The 'mindspore.runtime.set_cpu_affinity' cannot be set repeatedly.")


def set_kernel_launch_group(thread_num: int = 2, kernel_group_num: int = 8) -> None:
    """`mindspore.runtime.set_kernel_launch_group` of 2.10: accepted once, without effect."""
    for name, value in (("thread_num", thread_num), ("kernel_group_num", kernel_group_num)):
        _check(name, value, int)
        if value < 1:
            raise ValueError(f"The value of {name} should be at least 1, but got {value}")
    if kernel_group_num % thread_num:
        raise ValueError(
            f"Invalid parameter value, kernel_group_num: {kernel_group_num} cannot be evenly "
            f"divisible by thread_num: {thread_num}"
        )
    _once("kernel_launch_group", "The 'kernel_launch_group' can not be set repeatedly.")


def set_kernel_launch_capture(enable_capture_graph: bool, op_capture_skip: Any = None) -> None:
    """`mindspore.runtime.set_kernel_launch_capture` of 2.10: True is not built yet."""
    _check("enable_capture_graph", enable_capture_graph, bool)
    if enable_capture_graph:
        _refuse("set_kernel_launch_capture", "captured launches are graphs")


def _refuse(name: str, why: str) -> NoReturn:
    raise NotSupportedError(f"mindspore.runtime.{name} is not built yet: {why}", operation=name)


class PluggableAllocator:
    """`mindspore.runtime.PluggableAllocator` of 2.10: not built yet."""

    def __init__(self, path_to_so_file: str, alloc_fn_name: str, free_fn_name: str) -> None:
        _refuse("PluggableAllocator", "memory comes from the runtime's own pool")

    @property
    def alloc_fn_ptr(self) -> int:
        """Never reached: the constructor raises."""
        raise AttributeError("alloc_fn_ptr")

    @property
    def free_fn_ptr(self) -> int:
        """Never reached: the constructor raises."""
        raise AttributeError("free_fn_ptr")


class MemPool:
    """`mindspore.runtime.MemPool` of 2.10: not built yet."""

    def __init__(self, allocator: PluggableAllocator) -> None:
        _refuse("MemPool", "memory comes from the runtime's own pool")

    @property
    def allocator(self) -> PluggableAllocator:
        """Never reached: the constructor raises."""
        raise AttributeError("allocator")


def use_mem_pool(pool: MemPool) -> NoReturn:
    """`mindspore.runtime.use_mem_pool` of 2.10: not built yet."""
    _refuse("use_mem_pool", "memory comes from the runtime's own pool")
