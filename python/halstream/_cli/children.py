"""Running a script repeatedly, each time in a process of its own, which is forked where that is possible.

State that a script leaves in its modules would change its next run in the same
process; in a process of its own every run starts from the same state.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from .._checks import nearby
from .._checks.results import Result
from .._records import OperationRecord
from .._schedules.execution import Execution, Failure
from .forking import Forks, LostError, forks

__all__ = ["UNKNOWN", "CannotRunError", "Children", "Options"]

#: The fingerprint of a run that did nothing with streams, or of which nothing is known.
UNKNOWN = "0" * 16


class CannotRunError(Exception):
    """A script cannot be run under schedules; the text says why."""


class Options(NamedTuple):
    """How a script is run."""

    sanitize: bool = False  #: look for unordered accesses, too
    torch: bool = False  #: redirect the real torch's CUDA device first
    limit: float = 0  #: seconds that one run under a schedule may take
    module: bool = False  #: the script is the name of a module
    strict: bool = False  #: of the sanitizer: functions of unknown accesses count, too
    pages: bool = False  #: of the sanitizer: see accesses by the pages of memory
    sources: str = ""  #: a file of JSON with other sources by file, which are run in place of the files' own
    paddle: bool = False  #: give the real Paddle the host device first
    cuda: bool = False  #: give CUDA programs the driver on the host device first
    real_threads: bool = False  #: the sanitizer leaves the device on real threads, in a run without a schedule


class Children:
    """Runs a script under specs; `search` takes it as the program.

    Parameters
    ----------
    script : str
    args : sequence of str
        Of the script.
    options : Options
    announce : function
        Called with the spec before each run.

    Attributes
    ----------
    output : str
        What the last run that failed printed.
    results : list of Result
        What the sanitizer found in it.
    loaded : set of str
        The files of `sources` that the last run loaded.
    elsewhere : bool
        Whether processes that the last run started used torch's device.
    fault : Result or None
        The wait without an end, or the assertion of a function on a stream, that it failed with.
    """

    def __init__(
        self,
        script: str,
        args: Sequence[str],
        options: Options,
        announce: Callable[[str], object] = lambda spec: None,
    ) -> None:
        self._script, self._args = script, list(args)
        self._options, self._announce = options, announce
        self._stacks: dict[str, int] = {}
        self._texts = [""]
        self.output = ""
        self.results: list[Result] = []
        self.loaded: set[str] = set()
        self.elsewhere = False
        self._forks: Forks | None = None
        self.fault: Result | None = None

    def __call__(self, spec: str, trace: bool = False) -> Execution:
        """Run the script under a spec, with its output kept back."""
        self._announce(spec)
        with tempfile.TemporaryDirectory(prefix="halstream-") as folder:
            answer, output = Path(folder, "answer"), Path(folder, "output")
            with output.open("wb") as sink:
                code = self._run(self._request(spec, trace, answer), sink)
            execution = self._execution(spec, code, answer)
            if execution.failure is not None:
                self.output = output.read_text(errors="replace")
        return execution

    def attached(self, spec: str) -> tuple[Execution, int]:
        """Run the script under a spec on this process's terminal, without a limit; return its exit code, too."""
        with tempfile.TemporaryDirectory(prefix="halstream-") as folder:
            answer = Path(folder, "answer")
            process = subprocess.Popen(self._command(self._request(spec, False, answer)), env=_environment())
            try:
                code = process.wait()
            except KeyboardInterrupt:
                code = process.wait()  # Ctrl-C reached it as well
            return self._execution(spec, code, answer), code

    def text(self, site: int) -> str:
        """Return the stack of a site in the lines of any run."""
        return self._texts[site]

    def _request(self, spec: str, trace: bool, answer: Path) -> list[str]:
        """Return the arguments of ``_child``."""
        request: dict[str, Any] = {"spec": spec, "result": str(answer), "trace": trace}
        request |= {"sanitize": self._options.sanitize, "torch": self._options.torch}
        request |= {"paddle": self._options.paddle, "cuda": self._options.cuda}
        request |= {"module": self._options.module, "strict": self._options.strict, "pages": self._options.pages}
        request |= {"nearby": nearby.wanted(), "sources": self._options.sources}
        return [json.dumps(request), self._script, *self._args]

    def _command(self, request: list[str]) -> list[str]:
        return [sys.executable, *_options(), "-m", "halstream", "_child", *request]

    def _run(self, request: list[str], sink: IO[bytes]) -> int | None:
        """Run a request; return its exit code, None if it took too long."""
        self._forks = forks(_options(), self._options.torch, _environment())
        if self._forks is not None:
            try:
                return self._forks.run(request, sink, self._options.limit)
            except LostError:
                sink.seek(0)  # once more, in a process that depends on no other one
                sink.truncate()
        process = subprocess.Popen(
            self._command(request),
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            env=_environment(),
            start_new_session=True,  # ended with all that it started
        )
        try:
            return process.wait(self._options.limit)
        except subprocess.TimeoutExpired:
            # Prints the stacks of all threads.
            process.send_signal(signal.SIGABRT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(5)
            return None
        finally:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()

    def _execution(self, spec: str, code: int | None, answer: Path) -> Execution:
        """Return the result of a run; a run without one has failed unless its exit code is 0."""
        try:
            found = json.loads(answer.read_text(encoding="utf-8"))
        except FileNotFoundError:
            return Execution(spec, fingerprint=UNKNOWN, failure=_failure(code, self._options.limit))
        if "refused" in found:
            raise CannotRunError(found["refused"])
        self.loaded, self.elsewhere = set(found["loaded"]), found["elsewhere"]
        if self._forks is not None:
            self._forks.also = found["later"]
        failure = found["failure"] and Failure(**found["failure"])
        if failure is not None:
            self.results, self.fault = found["results"], found["fault"]
        if failure is None and code is None:
            failure = _failure(code, self._options.limit)  # it hung after its end
        operations = self._renumbered(found["trace"], found["sites"])
        return Execution(
            spec,
            found["order"],
            found["calls"],
            found["fingerprint"] or UNKNOWN,
            found["steps"],
            failure,
            tuple(operations),
            turns=found["turns"],
            points=found["points"],
            uncontrolled=found["uncontrolled"],
            handovers=tuple(found["handovers"]),
        )

    def _renumbered(self, operations: list[OperationRecord], sites: dict[str, str]) -> list[OperationRecord]:
        """Give sites numbers that are the same in all processes."""
        numbers = {0: 0}
        for number, text in sites.items():
            if text not in self._stacks:
                self._stacks[text] = len(self._texts)
                self._texts.append(text)
            numbers[int(number)] = self._stacks[text]
        for one in operations:
            one["site"] = numbers[one["site"]]
        return operations


def _options() -> list[str]:
    """Return the options of Python in each run."""
    return ["-Xfaulthandler", *(f"-W{option}" for option in sys.warnoptions)]


def _environment() -> dict[str, str]:
    """Return the environment of a run: Python's random choices, such as hash seeds, are the same in all."""
    return {"PYTHONHASHSEED": "0", **os.environ}


def _failure(code: int | None, limit: float) -> Failure:
    """Return how a process failed that gave no answer."""
    if code is None:
        return Failure("time limit", text=f"not done after {limit:g} s", search=False)
    if code == 0:
        raise CannotRunError(
            "the script ended its process by itself (os._exit, exec), so that nothing is known of its run"
        )
    if code < 0:
        return Failure(signal.Signals(-code).name, text=f"the process was ended by signal {-code}", search=False)
    if code == 130:
        raise KeyboardInterrupt
    return Failure(f"exit code {code}", text="the process ended before the run did", search=False)
