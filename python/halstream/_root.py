"""Where the package lies, to tell its own frames from those of a program."""

from __future__ import annotations

import os

__all__ = ["ROOT"]

#: Folder of the package, with a separator at its end.
ROOT = os.path.dirname(os.path.abspath(__file__)) + os.sep
