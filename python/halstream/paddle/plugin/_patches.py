"""Replacements of functions of Paddle's Python classes, for what its interface for devices cannot pass on."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

__all__ = ["Patches", "patch"]

_ABSENT: Any = object()
#: Paddle's priorities, and those of the runtime: lower is more urgent.
_PRIORITIES = {1: -1, -1: -1, 2: 0, 0: 0, None: 0}


class Patches:
    """Replaced attributes of modules and classes, undone in reverse order."""

    def __init__(self) -> None:
        self._before: list[tuple[Any, str, Any]] = []

    def set(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        """Replace an attribute by what `make` returns for the one before, None if there is none."""
        before = vars(owner).get(name, _ABSENT)
        self._before.append((owner, name, before))
        setattr(owner, name, make(None if before is _ABSENT else before))

    def undo(self) -> None:
        """Put everything back."""
        while self._before:
            owner, name, value = self._before.pop()
            if value is _ABSENT:
                delattr(owner, name)
            else:
                setattr(owner, name, value)


def patch(paddle: ModuleType, plugin: Any, device_type: str) -> Patches:
    """Replace what needs it; objects of other device types go to Paddle's own functions.

    Parameters
    ----------
    paddle : module
    plugin : module
        The compiled one.
    device_type : str
    """
    core = paddle.base.core
    patches = Patches()
    ours = _Ours(core, device_type)
    _base_classes(patches, core, plugin, ours)
    _classes(patches, paddle, core, ours)
    return patches


class _Ours:
    """Which objects of Paddle are on our devices."""

    def __init__(self, core: Any, device_type: str) -> None:
        self._stream = core.CustomDeviceStream
        self._event = core.CustomDeviceEvent
        self._place = core.CustomPlace
        self.type = device_type

    def place(self, place: Any) -> bool:
        return isinstance(place, self._place) and place.get_device_type() == self.type

    def stream(self, base: Any) -> bool:
        return isinstance(base, self._stream) and self.place(base.place)

    def event(self, base: Any) -> bool:
        return isinstance(base, self._event) and self.place(base.place)


def _base_classes(patches: Patches, core: Any, plugin: Any, ours: _Ours) -> None:
    """Patch the classes that Paddle's own are made of."""

    def make_stream(before: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            # (place, priority, blocking) or (type, device_id, priority, blocking)
            rest = args[2:] if args and isinstance(args[0], str) else args[1:]
            priority = kwargs.get("priority", rest[0] if rest else 2)
            blocking = kwargs.get("blocking", rest[1] if len(rest) > 1 else False)
            if priority is None:
                kwargs = {**kwargs, "priority": 2}
            plugin.announce_stream(_PRIORITIES.get(priority, 0), bool(blocking))
            before(self, *args, **kwargs)

        return __init__

    def make_event(before: Any) -> Any:
        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            # (place, enable_timing, blocking, interprocess) or (type, device_id, enable_timing, ...)
            rest = args[2:] if args and isinstance(args[0], str) else args[1:]
            timing = kwargs.get("enable_timing", rest[0] if rest else False)
            blocking = kwargs.get("blocking", rest[1] if len(rest) > 1 else False)
            plugin.announce_event(bool(timing), bool(blocking))
            before(self, *args, **kwargs)

        return __init__

    def wait_stream(before: Any) -> Any:
        def wait_stream(self: Any, other: Any) -> None:
            if ours.stream(self) and ours.stream(other):
                plugin.wait_stream(self.raw_stream, other.raw_stream)
            else:
                before(self, other)

        return wait_stream

    def synchronize(before: Any, handle: str, is_ours: Callable[[Any], bool], wait: Any) -> Any:
        def synchronize(self: Any) -> None:
            if is_ours(self):
                wait(getattr(self, handle))
            else:
                before(self)

        return synchronize

    def elapsed_time(before: Any) -> Any:
        def elapsed_time(self: Any, end_event: Any) -> float:
            if ours.event(self) and ours.event(end_event):
                elapsed: float = plugin.elapsed(self.raw_event, end_event.raw_event)
                return elapsed
            if before is None:
                raise AttributeError("events of this device type have no elapsed_time")
            other: float = before(self, end_event)
            return other

        return elapsed_time

    stream, event = core.CustomDeviceStream, core.CustomDeviceEvent
    patches.set(stream, "__init__", make_stream)
    patches.set(event, "__init__", make_event)
    patches.set(stream, "wait_stream", wait_stream)
    patches.set(event, "elapsed_time", elapsed_time)
    # For the runtime's own errors and Ctrl-C: Paddle's interface passes only a number.
    patches.set(stream, "synchronize", lambda b: synchronize(b, "raw_stream", ours.stream, plugin.synchronize_stream))
    patches.set(event, "synchronize", lambda b: synchronize(b, "raw_event", ours.event, plugin.synchronize_event))


def _classes(patches: Patches, paddle: Any, core: Any, ours: _Ours) -> None:
    """Patch paddle.device.Stream and Event: their arguments in all documented forms."""
    device = paddle.device

    def place_of(given: Any) -> Any:
        """Return the place of a device argument, None if it is none of ours."""
        if given is None:
            given = paddle.framework._current_expected_place_()
        elif isinstance(given, str):
            if given.split(":")[0] != ours.type:
                return None
            number = given.partition(":")[2]
            given = core.CustomPlace(ours.type, int(number or 0))
        return given if ours.place(given) else None

    def make_event(before: Any) -> Any:
        def __init__(
            self: Any,
            *args: Any,
            device: Any = None,
            enable_timing: bool = False,
            blocking: bool = False,
            interprocess: bool = False,
        ) -> None:
            # The device came first up to 3.2, and is no parameter any more in 3.3.
            if args and not isinstance(args[0], (bool, int)):
                device, args = args[0], args[1:]
            given = dict(enable_timing=enable_timing, blocking=blocking, interprocess=interprocess)
            given |= dict(zip(("enable_timing", "blocking", "interprocess"), args, strict=False))
            place = place_of(device)
            if place is None:
                before(self, *([] if device is None else [device]), **given)
                return
            self.device = place
            self.event_base = core.CustomDeviceEvent(place, **given)

        return __init__

    def make_stream(before: Any) -> Any:
        def __init__(
            self: Any, device: Any = None, priority: Any = 2, stream_base: Any = None, blocking: Any = False
        ) -> None:
            # The third one is `blocking` in the documentation, and `stream_base` in the code.
            if isinstance(stream_base, bool):
                stream_base, blocking = None, stream_base
            place = None if stream_base is not None else place_of(device)
            if place is None:
                before(self, device, 2 if priority is None else priority, stream_base)
                return
            if priority not in _PRIORITIES:
                raise ValueError(f"priority is {priority!r}; give 1 (high) or 2 (normal)")
            self.device = place
            plain = 1 if _PRIORITIES[priority] < 0 else 2
            self.stream_base = core.CustomDeviceStream(place, plain, bool(blocking))

        return __init__

    def record_event(before: Any) -> Any:
        def record_event(self: Any, event: Any = None) -> Any:
            if event is None and ours.stream(self.stream_base):
                event = device.Event(device=self.device)
            return before(self, event)

        return record_event

    patches.set(device.Event, "__init__", make_event)
    patches.set(device.Stream, "__init__", make_stream)
    patches.set(device.Stream, "record_event", record_event)
