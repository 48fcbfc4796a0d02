"""One session of pytest for a campaign, in a process of its own."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["CampaignError", "session"]

_PLUGIN = "halstream._plugin.slices"
#: pytest's own exit codes with which a session has done what it should: all passed, and some failed.
_DONE = (0, 1)
#: Lines of what pytest printed, for an error.
_LAST = 15


class CampaignError(Exception):
    """A campaign cannot be carried out; the text says why."""


def session(
    arguments: Sequence[str],
    slices: Sequence[Mapping[str, Any]] | None,
    *,
    folder: str,
    workers: int = 0,
    cache: bool = False,
) -> Iterator[dict[str, Any]]:
    """Run pytest and yield its answers as they come, each a dict with a ``kind``.

    The process and what it started end with this generator, and with this process.

    Parameters
    ----------
    arguments : sequence of str
        For pytest: tests and options.
    slices : sequence of dict, or None
        What to run; None only collects.
    folder : str
        Where pytest is started.
    workers : int
        Of pytest-xdist; 0 for none.
    cache : bool
        Let pytest keep what it remembers of the tests.

    Raises
    ------
    CampaignError
        If pytest ends with an error of its own, such as a wrong option.
    """
    with contextlib.ExitStack() as stack:
        temporary = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="halstream-")))
        (alive, held), (answers, written) = os.pipe(), os.pipe()
        lines = stack.enter_context(os.fdopen(answers, encoding="utf-8"))
        held_end = stack.enter_context(os.fdopen(held, "wb"))
        request, output = temporary / "request", temporary / "output"
        content = {"slices": None if slices is None else list(slices), "alive": alive, "answers": written}
        request.write_text(json.dumps(content), encoding="utf-8")
        words = [*_options(workers, cache), f"--stream-slices={request}", *arguments]
        if slices is None:
            words.append("--collect-only")
        try:
            with output.open("wb") as sink:
                process = subprocess.Popen(
                    [sys.executable, "-m", "pytest", *words],
                    cwd=folder,
                    stdin=subprocess.DEVNULL,
                    stdout=sink,
                    stderr=subprocess.STDOUT,
                    pass_fds=(alive, written),
                    start_new_session=True,  # Ctrl-C is for the campaign, which ends it with all that it started
                )
        except OSError as exc:
            raise CampaignError(f"pytest cannot be started in {folder}: {exc.strerror}") from None
        finally:
            os.close(alive)
            os.close(written)
        try:
            for line in lines:
                if line.endswith("\n"):  # not what a process that was killed has left
                    yield json.loads(line)
            code = process.wait()
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            held_end.close()
        if code > 0 and code not in _DONE:
            last = output.read_text(errors="replace").strip().splitlines()[-_LAST:]
            raise CampaignError("\n".join([f"pytest ended with exit code {code}:", *last]))


def _options(workers: int, cache: bool) -> list[str]:
    words = ["-q", "-p", _PLUGIN, "-p", "no:randomly", "-o", "stream_report=", "--maxfail=0"]
    words += [] if cache else ["-p", "no:cacheprovider"]
    if workers:
        words += ["-n", str(workers), "--dist", "load", "--maxschedchunk", "1"]
    elif importlib.util.find_spec("xdist") is not None:
        words += ["-n", "0"]  # also where the ini file says otherwise
    return words
