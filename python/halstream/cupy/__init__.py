"""cupy (14.2.0): its stream layer, over any device of the runtime.

``from halstream.cupy import cuda`` stands for ``from cupy import cuda``. Arrays,
memory and kernels are not built yet.
"""

from __future__ import annotations

from . import cuda

__all__ = ["cuda"]
