"""``python -m halstream.paddle.plugin --operators``: which operators run in stream order."""

from __future__ import annotations

import argparse
import importlib
import sys

from . import PluginError, operators


def main() -> int:
    """Print what was asked for, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m halstream.paddle.plugin", description=__doc__)
    parser.add_argument("--operators", action="store_true", required=True, help="list how each operator runs")
    parser.parse_args()
    importlib.import_module("paddle")
    try:
        found = operators()
    except PluginError as exc:
        print(f"halstream: {exc}", file=sys.stderr)
        return 1
    for name, how in sorted(found.items(), key=lambda one: (one[1] != "stream", one[0])):
        print(f"{how:<8}  {name}")
    count = sum(how == "stream" for how in found.values())
    print(f"{count} of {len(found)} operators run in stream order, the others through Paddle's fallback")
    return 0


if __name__ == "__main__":
    sys.exit(main())
