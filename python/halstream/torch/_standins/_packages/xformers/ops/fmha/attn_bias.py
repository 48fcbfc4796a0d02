"""Stand-in for xformers.ops.fmha.attn_bias: which queries see which keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

__all__ = [
    "AttentionBias",
    "BlockDiagonalCausalFromBottomRightMask",
    "BlockDiagonalCausalLocalAttentionFromBottomRightMask",
    "BlockDiagonalCausalLocalAttentionMask",
    "BlockDiagonalCausalMask",
    "BlockDiagonalCausalWithOffsetPaddedKeysMask",
    "BlockDiagonalMask",
    "LocalAttentionFromBottomRightMask",
    "LowerTriangularFromBottomRightLocalAttentionMask",
    "LowerTriangularFromBottomRightMask",
    "LowerTriangularMask",
    "LowerTriangularMaskWithTensorBias",
]


class AttentionBias:
    """Which keys queries see: a mask for each block of queries and keys, and a tensor to add, or None."""

    added: Any = None

    def blocks(self, queries: int, keys: int) -> Iterator[tuple[slice, slice]]:
        """Yield the queries and keys that have to do with each other."""
        yield slice(0, queries), slice(0, keys)

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return True where a query of a block sees a key, None for everywhere."""
        return None

    def materialize(self, shape: Sequence[int], dtype: Any = torch.float32, device: Any = "cpu") -> Any:
        """Return the bias as a tensor: 0 where a query sees a key, negative infinity elsewhere."""
        bias = torch.full(tuple(shape[-2:]), float("-inf"), dtype=dtype, device=device)
        for rows, columns in self.blocks(shape[-2], shape[-1]):
            part = bias[rows, columns]
            seen = self.seen(part.shape[0], part.shape[1], device)
            part.fill_(0) if seen is None else part.masked_fill_(seen, 0)
        whole = bias.expand(tuple(shape))
        return whole if self.added is None else whole + self.added


def _ahead(queries: int, keys: int, device: Any, bottom_right: bool) -> Any:
    """Return by how much each key stands after each query; the first ones, or the last, stand at one place."""
    shift = keys - queries if bottom_right else 0
    return torch.arange(keys, device=device) - torch.arange(queries, device=device).unsqueeze(1) - shift


class LowerTriangularMask(AttentionBias):
    """A query sees the keys up to its own place."""

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        return _ahead(queries, keys, device, False) <= 0

    def add_bias(self, bias: Any) -> LowerTriangularMaskWithTensorBias:
        """Return the mask with a tensor to add."""
        return LowerTriangularMaskWithTensorBias(bias)


class LowerTriangularMaskWithTensorBias(LowerTriangularMask):
    """The same with a tensor to add."""

    def __init__(self, bias: Any) -> None:
        self.added = bias


@dataclass
class LocalAttentionFromBottomRightMask(AttentionBias):
    """A query sees some keys before and after its place, where the last query stands at the last key."""

    window_left: int
    window_right: int

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        ahead = _ahead(queries, keys, device, True)
        return (ahead <= self.window_right) & (ahead >= -self.window_left)


class LowerTriangularFromBottomRightMask(AttentionBias):
    """A query sees the keys up to its own place, where the last query stands at the last key."""

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        return _ahead(queries, keys, device, True) <= 0

    def make_local_attention(self, window_size: int) -> LowerTriangularFromBottomRightLocalAttentionMask:
        """Return the mask with fewer keys before the place."""
        return LowerTriangularFromBottomRightLocalAttentionMask(window_size)


@dataclass
class LowerTriangularFromBottomRightLocalAttentionMask(LowerTriangularFromBottomRightMask):
    """The same with that many keys at most."""

    _window_size: int

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        ahead = _ahead(queries, keys, device, True)
        return (ahead <= 0) & (ahead > -self._window_size)


# -- sequences that lie one behind the other ------------------------------------------


class _Lengths:
    """The lengths of sequences, and where they begin."""

    def __init__(self, lengths: Sequence[int], places: Sequence[int] | None = None) -> None:
        self.lengths = list(lengths)
        self.places = [sum(self.lengths[:i]) for i in range(len(self.lengths))] if places is None else list(places)

    def slices(self) -> list[slice]:
        return [slice(begin, begin + length) for begin, length in zip(self.places, self.lengths, strict=True)]


@dataclass
class BlockDiagonalMask(AttentionBias):
    """A query sees the keys of its own sequence."""

    q_seqinfo: _Lengths
    k_seqinfo: _Lengths
    _batch_sizes: Sequence[int] | None = None

    def blocks(self, queries: int, keys: int) -> Iterator[tuple[slice, slice]]:
        """Yield the queries and keys of each sequence."""
        yield from zip(self.q_seqinfo.slices(), self.k_seqinfo.slices(), strict=True)

    @classmethod
    def from_seqlens(
        cls, q_seqlen: Sequence[int], kv_seqlen: Sequence[int] | None = None, *, device: Any = None
    ) -> Any:
        """Return the mask of sequences with these lengths."""
        queries = _Lengths(q_seqlen)
        return cls(queries, queries if kv_seqlen is None else _Lengths(kv_seqlen))

    @classmethod
    def from_tensor_list(cls, tensors: Sequence[Any]) -> tuple[Any, Any]:
        """Return the mask of tensors of shape (batch, length, ...), and these one behind the other."""
        mask = cls.from_seqlens([one.shape[1] for one in tensors for _ in range(one.shape[0])])
        mask._batch_sizes = [one.shape[0] for one in tensors]
        return mask, torch.cat([one.reshape(1, -1, *one.shape[2:]) for one in tensors], 1)

    def _split(self, tensor: Any, info: _Lengths) -> list[Any]:
        parts = [tensor[:, one] for one in info.slices()]
        if self._batch_sizes is None:
            return parts
        taken = iter(parts)
        return [torch.cat([next(taken) for _ in range(size)]) for size in self._batch_sizes]

    def split(self, tensor: Any) -> list[Any]:
        """Return the sequences of a tensor of shape (1, all, ...) again."""
        return self._split(tensor, self.q_seqinfo)

    split_queries = split

    def split_kv(self, tensor: Any) -> list[Any]:
        """Return the sequences of keys or values again."""
        return self._split(tensor, self.k_seqinfo)

    def _as(self, kind: Any, *rest: Any) -> Any:
        return kind(self.q_seqinfo, self.k_seqinfo, self._batch_sizes, *rest)

    def make_causal(self) -> BlockDiagonalCausalMask:
        """Return the mask where a query sees the keys up to its own place."""
        found: BlockDiagonalCausalMask = self._as(BlockDiagonalCausalMask)
        return found

    def make_causal_from_bottomright(self) -> BlockDiagonalCausalFromBottomRightMask:
        """Return the same, where the last query stands at the last key."""
        found: BlockDiagonalCausalFromBottomRightMask = self._as(BlockDiagonalCausalFromBottomRightMask)
        return found


@dataclass
class BlockDiagonalCausalMask(BlockDiagonalMask):
    """A query sees the keys of its own sequence up to its own place."""

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        return _ahead(queries, keys, device, False) <= 0

    def make_local_attention(self, window_size: int) -> BlockDiagonalCausalLocalAttentionMask:
        """Return the mask with that many keys at most."""
        found: BlockDiagonalCausalLocalAttentionMask = self._as(BlockDiagonalCausalLocalAttentionMask, window_size)
        return found


@dataclass
class BlockDiagonalCausalLocalAttentionMask(BlockDiagonalCausalMask):
    """The same with that many keys at most."""

    _window_size: int = 0

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        ahead = _ahead(queries, keys, device, False)
        return (ahead <= 0) & (ahead > -self._window_size)


@dataclass
class BlockDiagonalCausalFromBottomRightMask(BlockDiagonalMask):
    """A query sees the keys of its own sequence up to its place, where the last query stands at the last key."""

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        return _ahead(queries, keys, device, True) <= 0

    def make_local_attention(self, window_size: int) -> BlockDiagonalCausalLocalAttentionFromBottomRightMask:
        """Return the mask with that many keys at most."""
        found: BlockDiagonalCausalLocalAttentionFromBottomRightMask = self._as(
            BlockDiagonalCausalLocalAttentionFromBottomRightMask, window_size
        )
        return found


@dataclass
class BlockDiagonalCausalLocalAttentionFromBottomRightMask(BlockDiagonalCausalFromBottomRightMask):
    """The same with that many keys at most."""

    _window_size: int = 0

    def seen(self, queries: int, keys: int, device: Any) -> Any:
        """Return where a query sees a key."""
        ahead = _ahead(queries, keys, device, True)
        return (ahead <= 0) & (ahead > -self._window_size)


@dataclass
class BlockDiagonalCausalWithOffsetPaddedKeysMask(BlockDiagonalCausalFromBottomRightMask):
    """The same where the keys of each sequence lie at multiples of a padding."""

    @classmethod
    def from_seqlens(  # type: ignore[override]
        cls, q_seqlen: Sequence[int], kv_padding: int, kv_seqlen: Sequence[int], *, device: Any = None
    ) -> Any:
        """Return the mask of sequences with these lengths."""
        places = [kv_padding * i for i in range(len(kv_seqlen))]
        return cls(_Lengths(q_seqlen), _Lengths(kv_seqlen, places))
