"""What the sanitizer finds in the processes of a job: handed to `halstream run`, which says it once for all of them."""

from __future__ import annotations

import contextlib
import json
import multiprocessing
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from .report import Report
from .results import Result, of_finding

__all__ = ["collect", "hand_over", "want"]

#: The folder that gets a file from each process which has found something.
_FOLDER = "HALSTREAM_FINDINGS"


def want(folder: str) -> None:
    """Let the processes that this one starts hand over what is found in them."""
    os.environ[_FOLDER] = folder


def hand_over(report: Report) -> bool:
    """Hand over all that was found in this process so far; return False where nobody wants it."""
    folder = os.environ.get(_FOLDER)
    if not folder:
        return False
    file = Path(folder, str(os.getpid()))
    new = file.with_suffix(".new")
    if not report.all:
        return False
    try:
        name = json.loads(file.read_text(encoding="utf-8"))["name"] if file.exists() else _name()
        found = {"name": name, "results": [of_finding(finding) for finding in report.all]}
        new.write_text(json.dumps(found), encoding="utf-8")
        new.replace(file)  # whole, also if the process is killed now
    except OSError:
        return False  # the command has ended before
    return True


def _name() -> str:
    """Return what this process is in its job."""
    rank = os.environ.get("RANK")
    distributed: Any = sys.modules.get("torch.distributed")
    if rank is None and distributed is not None and distributed.is_available() and distributed.is_initialized():
        rank = str(distributed.get_rank())
    return f"process {multiprocessing.current_process().name}" if rank is None else f"rank {rank}"


def collect(folder: str) -> list[Result]:
    """Return what was handed over, each place once, with the processes that found it at the end of its text."""
    found: dict[tuple[Any, ...], Result] = {}
    names: dict[tuple[Any, ...], list[str]] = {}
    files = [json.loads(file.read_text(encoding="utf-8")) for file in Path(folder).glob("*") if not file.suffix]
    for one in sorted(files, key=_by_number):
        for result in one["results"]:
            key = _key(result)
            if key in found:
                found[key]["count"] += result["count"]
            found.setdefault(key, result)
            names.setdefault(key, []).append(one["name"])
    for key, result in found.items():
        result["text"] += f"\n  found in {_list(dict.fromkeys(names[key]))}"
    return list(found.values())


def _by_number(one: dict[str, Any]) -> tuple[str, int]:
    words, _, number = one["name"].rpartition(" ")
    with contextlib.suppress(ValueError):
        return words, int(number)
    return one["name"], 0


def _key(result: Result) -> tuple[Any, ...]:
    places = [place and (place["file"], place["line"]) for place in (result["place"], *result["others"])]
    return result["rule"], result["suppression"], *places


def _list(names: Iterable[str]) -> str:
    """Return "ranks 0, 1" for ranks, else the names."""
    given = list(names)
    if len(given) > 1 and all(name.startswith("rank ") for name in given):
        return "ranks " + ", ".join(name.removeprefix("rank ") for name in given)
    return ", ".join(given)
