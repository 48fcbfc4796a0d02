"""Stand-in for fbgemm_gpu.split_embedding_configs: types and optimizers of embedding tables."""

from __future__ import annotations

import enum
from typing import Any

import torch

__all__ = ["EmbOptimType", "SparseType"]


class EmbOptimType(enum.Enum):
    """Optimizers; those that a table of the stand-in takes are the exact ones of SGD, Adagrad by rows, and Adam."""

    SGD = "sgd"
    EXACT_SGD = "exact_sgd"
    LAMB = "lamb"
    ADAM = "adam"
    EXACT_ADAGRAD = "exact_adagrad"
    EXACT_ROWWISE_ADAGRAD = "exact_row_wise_adagrad"
    LARS_SGD = "lars_sgd"
    PARTIAL_ROWWISE_ADAM = "partial_row_wise_adam"
    PARTIAL_ROWWISE_LAMB = "partial_row_wise_lamb"
    ROWWISE_ADAGRAD = "row_wise_adagrad"
    SHAMPOO = "shampoo"
    SHAMPOO_V2 = "shampoo_v2"
    MADGRAD = "madgrad"
    EXACT_ROWWISE_WEIGHTED_ADAGRAD = "exact_row_wise_weighted_adagrad"
    ENSEMBLE_ROWWISE_ADAGRAD = "ensemble_row_wise_adagrad"
    EMAINPLACE_ROWWISE_ADAGRAD = "ema_in_place_row_wise_adagrad"
    NONE = "none"

    def __str__(self) -> str:
        return self.value


class SparseType(enum.Enum):
    """Types of tables and results."""

    FP32 = "fp32"
    FP16 = "fp16"
    FP8 = "fp8"
    INT8 = "int8"
    INT4 = "int4"
    INT2 = "int2"
    BF16 = "bf16"

    def __str__(self) -> str:
        return self.value

    def as_int(self) -> int:
        """Return the number that operators take."""
        return {"fp32": 0, "fp16": 1, "int8": 2, "int4": 3, "int2": 4, "bf16": 5, "fp8": 6}[self.value]

    def as_dtype(self) -> Any:
        """Return torch's type that holds it."""
        of = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
        return of.get(self.value, torch.uint8)

    def is_float(self) -> bool:
        """Return True if it is a floating-point type."""
        return self in (SparseType.FP32, SparseType.FP16, SparseType.FP8, SparseType.BF16)

    @staticmethod
    def from_dtype(dtype: Any) -> SparseType:
        """Return the type of a tensor's type."""
        of = {
            torch.float32: "fp32",
            torch.float16: "fp16",
            torch.bfloat16: "bf16",
            torch.int8: "int8",
            torch.uint8: "int8",
        }
        return SparseType(of[dtype])
