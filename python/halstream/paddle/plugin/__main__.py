"""``python -m halstream.paddle.plugin``: which operators run in stream order, and the libraries made ahead of time."""

from __future__ import annotations

import argparse
import importlib
import sys

from . import PluginError, _build, _wheel, operators


def main() -> int:
    """Print what was asked for, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m halstream.paddle.plugin", description=__doc__)
    wanted = parser.add_mutually_exclusive_group(required=True)
    wanted.add_argument("--operators", action="store_true", help="list how each operator runs")
    wanted.add_argument("--build", action="store_true", help="compile what is needed for the installed Paddle")
    options = parser.parse_args()
    try:
        if options.build:
            _build.operators(_wheel.installed())  # the plug-in was built by the import of this package
            return 0
        importlib.import_module("paddle")
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
