"""What kind of memory a block is, by the extension's numbers."""

from __future__ import annotations

__all__ = ["DEVICE", "PAGEABLE", "PINNED"]

PAGEABLE, PINNED, DEVICE = 0, 1, 2
