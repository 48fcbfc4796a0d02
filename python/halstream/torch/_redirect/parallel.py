"""torch.cuda.comm and torch.nn.DataParallel: copies between the devices of one process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .patches import Patches

__all__ = ["patch"]


def patch(torch: Any, patches: Patches) -> None:
    """Replace the functions of torch._C that a build for CUDA has in its library for CUDA."""

    def on(device: int) -> Any:
        return torch.device("cpu") if device < 0 else torch.device("cuda", device)

    def broadcast(tensor: Any, devices: Sequence[int]) -> list[Any]:
        return [tensor if on(i) == tensor.device else tensor.to(on(i), non_blocking=True) for i in devices]

    def broadcast_out(tensor: Any, outs: Sequence[Any]) -> list[Any]:
        for out in outs:
            if not (out.is_cuda and out.numel() == tensor.numel()):
                raise RuntimeError(
                    f"Expected all output tensors to be CUDA tensors of the size of the source, got {out.device}"
                )
            out.copy_(tensor, non_blocking=True)
        return list(outs)

    def broadcast_coalesced(tensors: Sequence[Any], devices: Sequence[int], buffer_size: int = 0) -> list[list[Any]]:
        if any(tensor.device != on(devices[0]) for tensor in tensors):
            raise RuntimeError("all tensors must be on devices[0]")
        return [list(tensors), *([tensor.to(on(i), non_blocking=True) for tensor in tensors] for i in devices[1:])]

    def streams(given: Any, devices: Sequence[Any]) -> list[Any]:
        return list(given) if given else [None] * len(devices)

    def scatter(tensor: Any, devices: Sequence[int], sizes: Any = None, dim: int = 0, given: Any = None) -> list[Any]:
        chunks = tensor.split(list(sizes), dim) if sizes else tensor.chunk(len(devices), dim)
        parts = []
        for chunk, device, stream in zip(chunks, devices, streams(given, devices), strict=False):
            with torch.cuda.device(device), torch.cuda.stream(stream):
                parts.append(chunk.to(on(device), non_blocking=True))
        return parts

    def scatter_out(tensor: Any, outs: Sequence[Any], dim: int = 0, given: Any = None) -> list[Any]:
        sizes = [out.size(dim) for out in outs]
        for out, chunk, stream in zip(outs, tensor.split(sizes, dim), streams(given, outs), strict=True):
            with torch.cuda.device(out.device), torch.cuda.stream(stream):
                out.copy_(chunk, non_blocking=True)
        return list(outs)

    def gather(tensors: Sequence[Any], dim: int = 0, device: int | None = None) -> Any:
        target = torch.device("cuda") if device is None else on(device)
        return torch.cat([tensor.to(target, non_blocking=target.type == "cuda") for tensor in tensors], dim)

    def gather_out(tensors: Sequence[Any], out: Any, dim: int = 0) -> Any:
        return out.copy_(torch.cat([tensor.to(out.device) for tensor in tensors], dim))

    for name, function in {
        "_broadcast": broadcast, "_broadcast_out": broadcast_out, "_broadcast_coalesced": broadcast_coalesced,
        "_scatter": scatter, "_scatter_out": scatter_out, "_gather": gather, "_gather_out": gather_out,
    }.items():  # fmt: skip
        patches.set(torch._C, name, function)
    _collectives(torch, patches)


def _collectives(torch: Any, patches: Patches) -> None:
    """torch.cuda.nccl's functions for the devices of one process."""
    operations = {0: torch.add, 1: torch.mul, 2: torch.maximum, 3: torch.minimum}

    def reduced(inputs: Sequence[Any], op: int) -> Any:
        total = inputs[0]
        for one in inputs[1:]:
            total = operations[op](total, one.to(total.device))
        return total

    def all_reduce(inputs: Sequence[Any], outputs: Sequence[Any], op: int, *rest: Any) -> None:
        total = reduced(inputs, op)
        for out in outputs:
            out.copy_(total)

    def reduce(inputs: Sequence[Any], output: Any, root: int, op: int, *rest: Any) -> None:
        output.copy_(reduced(inputs, op))

    def broadcast(inputs: Sequence[Any], root: int, *rest: Any) -> None:
        for one in inputs:
            one.copy_(inputs[root])

    def all_gather(inputs: Sequence[Any], outputs: Sequence[Any], *rest: Any) -> None:
        for out in outputs:
            out.view(-1).copy_(torch.cat([one.reshape(-1).to(out.device) for one in inputs]))

    def reduce_scatter(inputs: Sequence[Any], outputs: Sequence[Any], op: int, *rest: Any) -> None:
        for out, part in zip(outputs, reduced(inputs, op).reshape(-1).chunk(len(outputs)), strict=True):
            out.view(-1).copy_(part)

    for function in (all_reduce, reduce, broadcast, all_gather, reduce_scatter):
        patches.set(torch._C, f"_nccl_{function.__name__}", function)
