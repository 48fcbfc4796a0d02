"""Measures one peer in this process: python -m benchmarks.child NAME."""

from __future__ import annotations

import importlib
import sys

from .measure import Sheet


def main(name: str) -> None:
    """Measure, and print the sheet as one line of JSON."""
    sheet = Sheet()
    importlib.import_module(f"benchmarks.peers.{name}").measure(sheet)
    sheet.emit()


if __name__ == "__main__":
    main(sys.argv[1])
