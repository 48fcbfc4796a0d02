"""What torch.nn.DataParallel and torch.cuda.comm ask of NCCL and of CUDA's copies between devices.

torch's own functions call libraries of CUDA. These are made of copies between devices, which
are ordered with the current streams of both.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .patches import Patches

__all__ = ["patch"]


def patch(torch: Any, patches: Patches) -> None:
    """Replace the functions of `torch._C` behind torch.cuda.comm, and let torch.cuda.nccl offer nothing."""
    comm = _Comm(torch)
    names = ("broadcast", "broadcast_out", "broadcast_coalesced", "scatter", "scatter_out", "gather", "gather_out")
    for name in names:
        patches.set(torch._C, f"_{name}", getattr(comm, name))
    # torch.cuda.comm.reduce_add then adds by itself.
    patches.set(torch.cuda.nccl, "is_available", lambda tensors: False)


class _Comm:
    def __init__(self, torch: Any) -> None:
        self._torch = torch

    def _to(self, tensor: Any, device: int) -> Any:
        return tensor.to(self._torch.device("cuda", device), non_blocking=True)

    def broadcast(self, tensor: Any, devices: Sequence[int]) -> list[Any]:
        return [self._to(tensor, device) for device in devices]

    def broadcast_out(self, tensor: Any, outs: Sequence[Any]) -> list[Any]:
        return [out.copy_(tensor, non_blocking=True) for out in outs]

    def broadcast_coalesced(self, tensors: Sequence[Any], devices: Sequence[int], buffer_size: int) -> list[list[Any]]:
        return [[self._to(tensor, device) for tensor in tensors] for device in devices]

    def _chunks(self, tensor: Any, count: int, sizes: Sequence[int] | None, dim: int) -> Sequence[Any]:
        pieces: Sequence[Any] = tensor.chunk(count, dim) if sizes is None else tensor.split(list(sizes), dim)
        return pieces

    def scatter(
        self,
        tensor: Any,
        devices: Sequence[int],
        chunk_sizes: Sequence[int] | None = None,
        dim: int = 0,
        streams: Sequence[Any] | None = None,
    ) -> list[Any]:
        made = []
        for index, piece in enumerate(self._chunks(tensor, len(devices), chunk_sizes, dim)):
            stream = streams[index] if streams is not None else None
            with self._torch.cuda.device(devices[index]), self._torch.cuda.stream(stream):
                made.append(self._to(piece.contiguous(), devices[index]))
        return made

    def scatter_out(
        self, tensor: Any, outs: Sequence[Any], dim: int = 0, streams: Sequence[Any] | None = None
    ) -> list[Any]:
        pieces = self._chunks(tensor, len(outs), [out.size(dim) for out in outs], dim)
        for index, (piece, out) in enumerate(zip(pieces, outs, strict=True)):
            with self._torch.cuda.stream(streams[index] if streams is not None else None):
                out.copy_(piece, non_blocking=True)
        return list(outs)

    def gather(self, tensors: Sequence[Any], dim: int, destination: int | None) -> Any:
        if destination == -1:
            return self._torch.cat([tensor.cpu() for tensor in tensors], dim)
        target = self._torch.cuda.current_device() if destination is None else destination
        with self._torch.cuda.device(target):
            return self._torch.cat([self._to(tensor, target) for tensor in tensors], dim)

    def gather_out(self, tensors: Sequence[Any], out: Any, dim: int) -> Any:
        begin = 0
        for tensor in tensors:
            out.narrow(dim, begin, tensor.size(dim)).copy_(tensor, non_blocking=True)
            begin += tensor.size(dim)
        return out
