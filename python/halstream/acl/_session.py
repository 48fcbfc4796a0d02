"""What belongs to a whole process or thread, for dialects whose functions return codes.

Counted start and end of the runtime, the last failure of each thread, and
threads that are joined by their number.
"""

from __future__ import annotations

import contextlib
import itertools
import threading
from collections.abc import Callable
from typing import Any

from .._core._context import Context
from .._errors import HalError, InvalidValueError

_numbers = itertools.count(1)


class _Thread(threading.local):
    """The last failure of a thread."""

    code = 0
    text: str | None = None


class Session:
    """The process's use of the runtime; there is one, `session`."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread = _Thread()
        self._shared: str | None = None
        self._ended = False
        self.users: int = 0
        self.settings: str = ""
        #: Device of threads that have no context and chose none; None: they get an error.
        self.default_device: int | None = None
        #: Seconds that a stream waits for an event; 0 waits for ever.
        self.wait_limit = 0
        #: What the program wants to be called with a failure's information, None for nothing.
        self.exception_callback: Callable[[int], object] | None = None
        #: Information about failures, by number, while the callback runs.
        self.exceptions: dict[int, dict[str, int]] = {}
        #: True: one text for all threads, False: one for each thread.
        self.one_text: bool = False

    def begin(self, settings: str = "") -> int:
        """Count one more user; return how many there are.

        Raises
        ------
        InvalidValueError
            If the users before this one began with other settings.
        """
        with self._lock:
            if self.users and settings != self.settings:
                raise InvalidValueError("the runtime is already in use with other settings")
            self.settings = settings
            self._ended = False
            self.users += 1
            return self.users

    def end(self, everyone: bool = False) -> int:
        """Count one user less, or none at all; return how many are left.

        Raises
        ------
        InvalidValueError
            If the runtime has no users. The first forced end without users succeeds.
        """
        with self._lock:
            if not self.users and (self._ended or not everyone):
                raise InvalidValueError("the runtime has no users any more")
            self.users = 0 if everyone else self.users - 1
            if not self.users:
                self._ended = True
                self.default_device = None
                self.one_text = False
            return self.users

    def adopt(self) -> bool:
        """Give this thread the default device's context; False if there is no default."""
        if self.default_device is None:
            return False
        Context.primary(self.default_device)
        return True

    def report(self, code: int) -> None:
        """Call the program's callback for work that failed."""
        function = self.exception_callback
        if function is None:
            return
        number = next(_numbers)
        information = {"thread_id": threading.get_ident() & 0xFFFFFFFF, "error_code": code}
        with contextlib.suppress(HalError):
            information["device_id"] = Context.current().ordinal
        self.exceptions[number] = information
        try:
            function(number)
        finally:
            del self.exceptions[number]

    def remember(self, code: int, text: str) -> None:
        """Keep a failure as this thread's last one."""
        self._thread.code = code
        if self.one_text:
            self._shared = text
        else:
            self._thread.text = text

    def last_code(self, forget: bool) -> int:
        """Return the code of this thread's last failure, 0 for none."""
        code = self._thread.code
        if forget:
            self._thread.code = 0
        return code

    def take_text(self) -> str | None:
        """Return the text of the last failure and forget it."""
        if self.one_text:
            text, self._shared = self._shared, None
        else:
            text, self._thread.text = self._thread.text, None
        return text


session: Session = Session()


class JoinableThread:
    """A thread known by its number until it is joined.

    The system uses the number of an ended thread again, so the thread stays,
    asleep, until `join`.
    """

    def __init__(self, function: Callable[..., object], *args: Any) -> None:
        self._ended = threading.Event()
        self._joined = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, args=(function, args), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[..., object], args: tuple[Any, ...]) -> None:
        try:
            function(*args)
        except BaseException as exc:
            self._error = exc
        del function, args
        self._ended.set()
        self._joined.wait()

    @property
    def ident(self) -> int:
        """The thread's number, as `threading.get_ident` gives it inside."""
        return int(self._thread.ident or 0)

    def join(self) -> None:
        """Wait for the function to end; raise `RuntimeError` from an exception in it."""
        self._ended.wait()
        self._joined.set()
        self._thread.join()
        if self._error is not None:
            error, self._error = self._error, None
            raise RuntimeError(f"{type(error).__name__}: {error}") from error
