"""Stand-in for fbgemm_gpu.split_table_batched_embeddings_ops_common."""

from __future__ import annotations

import enum

from .tbe.config.embedding_config import BoundsCheckMode, ComputeDevice, EmbeddingLocation, PoolingMode

__all__ = ["BoundsCheckMode", "CacheAlgorithm", "ComputeDevice", "EmbeddingLocation", "PoolingMode"]


class CacheAlgorithm(enum.Enum):
    """Which rows a cache drops; there is none here."""

    LRU = 0
    LFU = 1
