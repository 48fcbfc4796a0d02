"""What tests of undeclared and declared accesses share."""

from __future__ import annotations

import halstream as hs
import numpy as np

LIMIT = 10.0


class Kit:
    """Two streams without order between them, and an array with a view of it."""

    def __init__(self) -> None:
        self.a, self.b = (hs.Stream(non_blocking=True) for _ in range(2))
        self.x = hs.zeros(16, np.uint8)
        hs.synchronize(timeout=LIMIT)
        self.view = np.asarray(self.x)
        self.out = hs.pinned_empty(16, np.uint8)

    def end(self) -> None:
        self.a.synchronize(timeout=LIMIT)
        self.b.synchronize(timeout=LIMIT)
