"""What `torch.cuda.memory._record_memory_history` records: allocations, frees and the calls that made them."""

from __future__ import annotations

import collections
import sys
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from ..._core._device import device_count

__all__ = ["History"]

# Which stacks are kept: those of memory in use, of every allocation, of frees as well.
_CONTEXTS = ("state", "alloc", "all")

Frames = list[dict[str, Any]]
Segment = tuple[int, int, int]


class _Thread(threading.local):
    metadata = ""


class History:
    """The events of each device, and the stacks of its memory in use, while recording is on."""

    def __init__(self, module: Any, segments: Callable[[], Iterable[Segment]]) -> None:
        self._module = module
        self._segments = segments  # device, address and size of each segment of the pools
        self._known: set[Segment] = set()  # those that no new event announces
        self._devices = device_count()
        self._thread = _Thread()
        self._live: dict[int, tuple[int, Frames]] = {}  # bytes asked for and stack, by address
        self._context = -1
        self._skipped: frozenset[str] = frozenset()
        self._traces: list[collections.deque[dict[str, Any]]] = []
        self._clear(None)
        self.enabled = False

    def _clear(self, most: int | None) -> None:
        self._traces = [collections.deque(maxlen=most) for _ in range(self._devices)]

    # -- what torch._C has -----------------------------------------------------

    def record(
        self, enabled: str | None, context: str | None = None, stacks: str = "all", max_entries: int = sys.maxsize,
        clear_history: bool = False, compile_context: bool = False, annotations: bool = False,
        skip_actions: Sequence[str] = (), *rest: Any,
    ) -> None:  # fmt: skip
        """torch._C._cuda_record_memory_history; stacks have Python's frames only."""
        if enabled not in (None, "state", "all"):
            raise RuntimeError("expected state to be 'state', 'all', or None")
        if context is not None and context not in _CONTEXTS:
            raise RuntimeError("expected context to be 'state', 'alloc', 'all', or None")
        most = max_entries if max_entries < sys.maxsize else None
        if enabled is None or clear_history or self._traces[0].maxlen != most:
            self._clear(most)
        self._context = -1 if context is None else _CONTEXTS.index(context)
        self._skipped = frozenset(skip_actions)
        self._known = set() if enabled is None else set(self._segments())
        self.enabled = enabled is not None
        self._module.observe_memory(self._changed if self.enabled else None)
        if not self.enabled:
            self._live.clear()

    def record_legacy(
        self, enabled: bool, context: bool = True, max_entries: int = 1, of_allocations: bool = False, *rest: Any
    ) -> None:
        """torch._C._cuda_record_memory_history_legacy."""
        self.record("all" if enabled else None, ("alloc" if of_allocations else "state") if context else None,
                    max_entries=max_entries)  # fmt: skip

    def set_metadata(self, text: str) -> None:
        """torch._C._cuda_setMemoryMetadata."""
        self._thread.metadata = text

    def metadata(self) -> str:
        """torch._C._cuda_getMemoryMetadata."""
        return self._thread.metadata

    def traceback(self, address: int) -> Frames | None:
        """torch._C._cuda_allocationTraceback."""
        return self._live[address][1] if address in self._live else None

    def emptied(self, empty: Callable[[], None]) -> None:
        """Call a function that gives segments back, and note those that it gave."""
        if not self.enabled:
            empty()
            return
        before = set(self._segments())
        empty()
        self._known = set(self._segments())
        for device, address, size in sorted(before - self._known):
            self._note(device, "segment_free", address, size, 0, self._stack(2))

    # -- for the snapshot -----------------------------------------------------

    def allocation(self, address: int, size: int) -> tuple[int, Frames]:
        """Return the bytes asked for and the stack of the allocation at an address; what is not known: `size`, []."""
        return self._live.get(address, (size, []))

    def traces(self) -> list[list[dict[str, Any]]]:
        """Return the events of each device, the oldest first."""
        return [list(trace) for trace in self._traces]

    # -- events -----------------------------------------------------------------

    def _stack(self, least: int) -> Frames:
        """Return the Python stack of the caller's caller, innermost first, if stacks are kept of so much."""
        if self._context < least:
            return []
        found: Frames = []
        frame = sys._getframe(2)
        while frame is not None:
            code = frame.f_code
            if code.co_filename != __file__:
                found.append({"name": code.co_name, "filename": code.co_filename, "line": frame.f_lineno})
            frame = frame.f_back  # type: ignore[assignment]
        return found

    def _note(self, device: int, action: str, address: int, size: int, stream: int, frames: Frames) -> None:
        if action not in self._skipped:
            self._traces[device].append({
                "action": action, "addr": address, "size": size, "stream": stream, "time_us": time.time_ns() // 1000,
                "compile_context": "N/A", "user_metadata": self._thread.metadata, "pool_id": (0, 0), "frames": frames,
            })  # fmt: skip

    def _grown(self, device: int, address: int, stream: int, frames: Frames) -> None:
        """Note the segments that an allocation added; one whose memory was there before adds none."""
        if any(of == device and start <= address < start + size for of, start, size in self._known):
            return
        now = set(self._segments())
        for of, start, size in sorted(now - self._known):
            self._note(of, "segment_alloc", start, size, stream, frames)
        self._known = now

    def _changed(self, allocated: bool, device: int, address: int, size: int, stream: int) -> None:
        """Note an allocation or a free: the module calls it."""
        if allocated:
            frames = self._stack(0)
            self._live[address] = size, frames
            noted = frames if self._context >= 1 else []
            self._grown(device, address, stream, noted)
            self._note(device, "alloc", address, size, stream, noted)
            return
        self._live.pop(address, None)
        frames = self._stack(2)
        self._note(device, "free_requested", address, size, stream, frames)
        self._note(device, "free_completed", address, size, stream, frames)
