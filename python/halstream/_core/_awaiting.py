"""``await`` for streams and events, in asyncio and in trio, without a thread that waits.

Each event loop has one list of waits in the extension, and one pipe that the loop
listens to: the runtime writes a byte when the first wait of a batch may end, the
loop takes the numbers of all of them and goes on with their tasks. A task that goes
on ends its own wait, which is where an error of the stream is raised.
"""

from __future__ import annotations

import itertools
import sys
import time
import weakref
from collections.abc import Callable, Generator, Iterator
from types import TracebackType
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _native
from .._records import decode
from .._runtime import Owner, runtime

if TYPE_CHECKING:
    from ._event import Event
    from ._stream import Stream

__all__ = ["EventAwaits", "StreamAwaits", "asyncio_line", "trio_line"]

_event_notify = _native.raw("event_notify")
_notices_drop = _native.raw("notices_drop")
_notices_end = _native.raw("notices_end")
_notices_take = _native.raw("notices_take")
_stream_notify = _native.raw("stream_notify")
_stream_sync = _native.raw("stream_sync")
_event_query = _native.raw("event_query")

S = TypeVar("S", bound="StreamAwaits")
Awaiting = Generator[Any, Any, Any]

# What a wait that was begun needs; the same numbers are in pybuild/notices.go.
_DONE = 0
_NOTICE = 1

# Seconds between two questions whether waits that look again and again can end; each costs milliseconds.
_ASK_S = 0.25
_monotonic = time.monotonic  # before a schedule replaces it

_numbers = itertools.count(1)
_modules = sys.modules
# Iterators of nothing: what is done does not suspend.
_nothing: tuple[None, ...] = ()


class _Line:
    """The waits of one event loop."""

    __slots__ = ("__weakref__", "_next", "_owner", "id", "left", "looking", "waiting")

    def __init__(self) -> None:
        self.id = int(_native.notices_new())
        self._owner = Owner(self.id)
        #: Futures, or tasks of trio, by the number of the wait.
        self.waiting: dict[int, Any] = {}
        #: Waits whose tasks were collected: the collector may run anywhere and calls nothing.
        self.left: list[int] = []
        #: The tasks that ask again and again, by `id`: a task that is collected ends its wait, and leaves the list.
        self.looking: set[int] = set()
        self._next = _monotonic() + _ASK_S

    def task(self) -> Any:
        """Return the calling task."""
        raise NotImplementedError

    def ask(self) -> None:
        """Ask from time to time whether what the tasks look for can come.

        A loop whose tasks ask again and again never waits where the extension would see it.

        Raises
        ------
        StallError
            If it cannot.
        """
        if _monotonic() < self._next:
            return
        _native.judge_loop(self)
        self._next = _monotonic() + _ASK_S

    def stop(self, error: BaseException) -> bool:
        """Raise an error in the task that has waited longest for a notice; False if none does."""
        raise NotImplementedError

    def suspend(self, number: int) -> Awaiting:
        """Return what suspends the calling task until its notice comes, and returns whether the wait has ended."""
        raise NotImplementedError

    def pause(self) -> Awaiting:
        """Return what lets other tasks run."""
        raise NotImplementedError

    def take(self) -> list[int]:
        """Return the numbers of the waits that have ended, and with a minus those that their tasks have to end."""
        try:
            numbers: list[int] = decode(_notices_take(self.id))
        except RuntimeError as exc:
            raise _native.error(exc) from None
        return numbers

    def drop_left(self) -> None:
        while self.left:
            _notices_drop(self.id, self.left.pop())


class _Asyncio(_Line):
    """The waits of a loop of `asyncio`, or of one that has its methods."""

    __slots__ = ("_future", "loop")

    def __init__(self, loop: Any) -> None:
        super().__init__()
        self.loop = loop
        self._future = loop.create_future
        # The loop keeps this object, by its reader, and nothing else does: a loop that was
        # closed, and its tasks, can be collected.
        loop.add_reader(int(_native.notices_file(self.id)), self.wake)

    def wake(self) -> None:
        take = self.waiting.pop
        for number in self.take():
            future = take(abs(number), None)
            if future is not None and not future.done():
                future.set_result(number > 0)

    def stop(self, error: BaseException) -> bool:
        for number in sorted(self.waiting):
            future = self.waiting.pop(number)
            if not future.done():
                future.set_exception(error)
                return True
        return False

    def suspend(self, number: int) -> Awaiting:
        future: Awaiting = self._future()
        self.waiting[number] = future
        return future

    def task(self) -> Any:
        return _modules["asyncio"].current_task(self.loop)

    def pause(self) -> Awaiting:
        return _turn()  # to the loop, which goes on with the task after the others


class _Trio(_Line):
    """The waits of a run of `trio`."""

    __slots__ = ("_trio", "_value")

    def __init__(self, trio: Any) -> None:
        super().__init__()
        self._trio = trio.lowlevel
        self._value = sys.modules["outcome"].Value  # of a package that trio is built on
        self._trio.spawn_system_task(self._serve)

    async def _serve(self) -> None:
        file = int(_native.notices_file(self.id))
        while True:
            await self._trio.wait_readable(file)
            for number in self.take():
                task = self.waiting.pop(abs(number), None)
                if task is not None:
                    self._trio.reschedule(task, self._value(number > 0))

    def stop(self, error: BaseException) -> bool:
        for number in sorted(self.waiting):
            self._trio.reschedule(self.waiting.pop(number), _modules["outcome"].Error(error))
            return True
        return False

    def suspend(self, number: int) -> Awaiting:
        def abort(_: Any) -> Any:
            self.waiting.pop(number, None)
            return self._trio.Abort.SUCCEEDED

        self.waiting[number] = self._trio.current_task()
        suspended: Awaiting = self._trio.wait_task_rescheduled(abort).__await__()
        return suspended

    def task(self) -> Any:
        return self._trio.current_task()

    def pause(self) -> Awaiting:
        turn: Awaiting = self._trio.checkpoint().__await__()
        return turn


# The lines of asyncio's loops, by the number of the loop, and the variable of a run of trio.
_lines: dict[int, weakref.ref[_Asyncio]] = runtime.keep("event loops with waits", {})
_trio_line: list[Any] = runtime.keep("trio's variable of a run", [])


def _line() -> _Line:
    """Return the line of the loop that runs the calling task.

    Raises
    ------
    RuntimeError
        If no loop of asyncio or trio runs it.
    """
    trio = _modules.get("trio")
    if trio is not None and _in_trio(trio.lowlevel):
        return _trio(trio)
    asyncio = _modules.get("_asyncio")  # of which asyncio is made
    loop = None if asyncio is None else asyncio._get_running_loop()
    if loop is None:
        raise RuntimeError("await of a halstream stream or event needs a running loop of asyncio or trio")
    line = asyncio_line(loop)
    if line is None:
        for number in [number for number, ref in list(_lines.items()) if ref() is None]:
            _lines.pop(number, None)
        line = _Asyncio(loop)
        _lines[id(loop)] = weakref.ref(line)
    return line


def _turn() -> Awaiting:
    yield


def _in_trio(lowlevel: Any) -> bool:
    try:
        lowlevel.current_task()
    except RuntimeError:
        return False
    return True


def _trio(trio: Any) -> _Trio:
    if not _trio_line:
        _trio_line.append(trio.lowlevel.RunVar("halstream"))
    line: _Trio | None = _trio_line[0].get(None)
    if line is None:
        line = _Trio(trio)
        _trio_line[0].set(line)
    return line


def asyncio_line(loop: Any) -> _Asyncio | None:
    """Return the line of a loop of asyncio, None if it has none; any thread may call this."""
    known = _lines.get(id(loop))
    line = None if known is None else known()
    return line if line is not None and line.loop is loop else None


def trio_line(runner: Any) -> _Trio | None:
    """Return the line of a run of trio, None if it has none; any thread may call this."""
    line: _Trio | None = runner._locals.get(_trio_line[0]) if _trio_line else None
    return line


def _pending(found: Any, begin: Callable[[int, int, int], int]) -> Awaiting:
    """Wait for a stream or an event that was pending a moment ago."""
    line = _line()
    if line.left:
        line.drop_left()
    number = next(_numbers)
    try:
        state = begin(found._id, line.id, number)
    except RuntimeError as exc:
        raise found._fail(exc, "synchronize") from None
    if state == _DONE:
        return
    ended, task = False, 0
    try:
        if state == _NOTICE:
            ended = yield from line.suspend(number)
        else:
            task = id(line.task())
            line.looking.add(task)
        while not ended:
            try:
                ended = bool(_notices_end(line.id, number))
            except RuntimeError as exc:
                ended = True
                raise found._fail(exc, "synchronize") from None
            if not ended:
                if task:
                    line.ask()
                yield from line.pause()
    except GeneratorExit:
        line.waiting.pop(number, None)
        line.left.append(number)
        ended = True
        raise
    finally:
        line.looking.discard(task)
        if not ended:  # the task was cancelled
            line.waiting.pop(number, None)
            _notices_drop(line.id, number)


class EventAwaits:
    """What makes an event awaitable."""

    __slots__ = ()

    def __await__(self: Event) -> Iterator[Any]:  # type: ignore[misc]
        """Suspend the task until the record that is the latest now is done.

        A record that is done already does not suspend. No thread waits. The loop is
        asyncio's or trio's; a time limit is the loop's, such as `asyncio.wait_for`.

        Raises
        ------
        ClosedError
            If the event is closed.
        DeviceLostError
            If the device was lost meanwhile.
        RuntimeError
            Where the record is pending and the caller is no task of asyncio or trio.

        Notes
        -----
        Contract Z1 to Z5.
        """
        try:
            done = _event_query(self._id)
        except RuntimeError as exc:
            raise self._fail(exc, "query") from None
        return iter(_nothing) if done else _pending(self, _event_notify)


class StreamAwaits:
    """What makes a stream awaitable, and an asynchronous context."""

    __slots__ = ()

    def __await__(self: Stream) -> Iterator[Any]:  # type: ignore[misc]
        """Suspend the task until the work enqueued so far is done; see `synchronize`.

        Work that is done already does not suspend. No thread waits. The loop is
        asyncio's or trio's; a time limit is the loop's, such as `asyncio.wait_for`.

        Raises
        ------
        ClosedError
            If the stream is closed.
        DeviceLostError
            If the device was lost meanwhile.
        RuntimeError
            Where work is pending and the caller is no task of asyncio or trio.
        BaseException
            The first error of the stream, once, as by `synchronize`.

        Notes
        -----
        Contract Z1 to Z5.
        """
        try:
            done = _stream_sync(self._id, 0)
        except RuntimeError as exc:
            raise self._fail(exc, "synchronize") from None
        return iter(_nothing) if done else _pending(self, _stream_notify)

    async def __aenter__(self: S) -> S:
        """Make the stream current for the task, as ``with`` does."""
        self.__enter__()  # type: ignore[attr-defined]
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """Restore what was current, then wait for the stream without blocking the loop.

        After an exception it only restores: a task that was cancelled ends at once, and
        the stream's work goes on.

        Notes
        -----
        Contract Z6.
        """
        self.__exit__(kind, exc, traceback)  # type: ignore[attr-defined]
        if kind is None:
            await self  # type: ignore[misc]
