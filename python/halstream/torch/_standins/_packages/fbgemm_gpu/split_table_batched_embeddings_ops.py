"""Stand-in for fbgemm_gpu.split_table_batched_embeddings_ops."""

from .split_table_batched_embeddings_ops_common import BoundsCheckMode, CacheAlgorithm
from .split_table_batched_embeddings_ops_training import (
    ComputeDevice,
    DenseTableBatchedEmbeddingBagsCodegen,
    EmbeddingLocation,
    OptimType,
    PoolingMode,
    SplitTableBatchedEmbeddingBagsCodegen,
    WeightDecayMode,
)

__all__ = [
    "BoundsCheckMode",
    "CacheAlgorithm",
    "ComputeDevice",
    "DenseTableBatchedEmbeddingBagsCodegen",
    "EmbeddingLocation",
    "OptimType",
    "PoolingMode",
    "SplitTableBatchedEmbeddingBagsCodegen",
    "WeightDecayMode",
]
