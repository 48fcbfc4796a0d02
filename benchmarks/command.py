"""What the commands that measure have in common: their options, stored figures, printing."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any


def parser(module: str, about: str, rounds: int, names: Iterable[str], output: Path) -> argparse.ArgumentParser:
    """Return the parser of a command that measures.

    Parameters
    ----------
    module
        Its name, for `python -m`.
    about
        What it is, for `--help`: the first paragraph counts.
    rounds
        How often it measures when nothing else is asked.
    names
        What `--only` can choose from.
    output
        Where the raw figures go when nothing else is asked.
    """
    made = argparse.ArgumentParser(prog=f"python -m {module}", description=about.split("\n\n")[0])
    made.add_argument("--rounds", type=int, default=rounds, help=f"processes of each kind (default {rounds})")
    made.add_argument("--only", nargs="+", choices=list(names), default=list(names), help="measure only these")
    made.add_argument("--output", type=Path, default=output, help="where the raw figures go")
    made.add_argument("--write", type=Path, metavar="FILE", help="put the table between the markers of this file")
    made.add_argument("--again", type=Path, metavar="JSON", help="measure nothing; print stored figures")
    return made


def figures(options: argparse.Namespace, measure: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return stored figures where the options name a file, else measure and store them."""
    if options.again:
        stored: dict[str, Any] = json.loads(options.again.read_text())
        return stored
    results = measure()
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(results, indent=1) + "\n")
    return results
