"""Stand-in for fbgemm_gpu.tbe.config.embedding_config: the choices of embedding tables."""

from __future__ import annotations

import enum

__all__ = ["BoundsCheckMode", "ComputeDevice", "EmbeddingLocation", "PoolingMode"]


class EmbeddingLocation(enum.IntEnum):
    """Where a table lies; here all but HOST are the device's memory."""

    DEVICE = 0
    MANAGED = 1
    MANAGED_CACHING = 2
    HOST = 3
    MTIA = 4


class ComputeDevice(enum.IntEnum):
    """Where a table is looked up."""

    CPU = 0
    CUDA = 1
    MTIA = 2


class PoolingMode(enum.IntEnum):
    """What becomes of the rows of a bag."""

    SUM = 0
    MEAN = 1
    NONE = 2


class BoundsCheckMode(enum.IntEnum):
    """What becomes of an index that is not in its table."""

    FATAL = 0
    WARNING = 1
    IGNORE = 2
    NONE = 3
    V2_IGNORE = 4
    V2_WARNING = 5
    V2_FATAL = 6
