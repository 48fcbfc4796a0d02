"""Stand-in for fbgemm_gpu: operators of torch.ops.fbgemm over jagged tensors, and embedding tables."""

from . import sparse_ops

__all__ = ["sparse_ops"]

__version__ = "1.9.0"
