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

    def check_output(out: Any, index: int) -> None:
        if not out.is_cuda:
            raise RuntimeError(
                f"Expected all output tensors to be CUDA tensors, but output tensor at index {index} has device "
                f"'{out.device}'"
            )

    def broadcast(tensor: Any, devices: Sequence[int]) -> list[Any]:
        return [tensor if on(i) == tensor.device else tensor.to(on(i), non_blocking=True) for i in devices]

    def broadcast_out(tensor: Any, outs: Sequence[Any]) -> list[Any]:
        for i, out in enumerate(outs):
            check_output(out, i)
            if out.shape != tensor.shape:
                raise RuntimeError(
                    "Expected all output tensors to have same shape as the source tensor "
                    f"{list(tensor.shape)}, but output tensor at index {i} has shape {list(out.shape)}"
                )
        for out in outs:
            out.copy_(tensor, non_blocking=True)
        return list(outs)

    def broadcast_coalesced(tensors: Sequence[Any], devices: Sequence[int], buffer_size: int = 0) -> list[list[Any]]:
        if any(tensor.device != on(devices[0]) for tensor in tensors):
            raise RuntimeError("all tensors must be on devices[0]")
        return [list(tensors), *([tensor.to(on(i), non_blocking=True) for tensor in tensors] for i in devices[1:])]

    def streams(given: Any, devices: Sequence[Any]) -> list[Any]:
        return list(given) if given else [None] * len(devices)

    def scatter(tensor: Any, devices: Sequence[int], sizes: Any = None, dim: int = 0, given: Any = None) -> list[Any]:
        if not devices:
            raise RuntimeError("Expected at least one device to scatter to")
        if sizes and len(sizes) != len(devices):
            raise RuntimeError(
                "Expected devices and chunk_sizes to be of same length, but got len(devices) = "
                f"{len(devices)} and len(chunk_sizes) = {len(sizes)}"
            )
        chunks = tensor.split(list(sizes), dim) if sizes else tensor.chunk(len(devices), dim)
        parts = []
        for chunk, device, stream in zip(chunks, devices, streams(given, devices), strict=False):
            with torch.cuda.device(device), torch.cuda.stream(stream):
                parts.append(chunk.to(on(device), non_blocking=True))
        return parts

    def scatter_out(tensor: Any, outs: Sequence[Any], dim: int = 0, given: Any = None) -> list[Any]:
        if not outs:
            raise RuntimeError("Expected at least one output tensor to scatter to")
        dim %= tensor.dim()
        for i, out in enumerate(outs):
            check_output(out, i)
            others = [out.shape[d] if d == dim else size for d, size in enumerate(tensor.shape)]
            if list(out.shape) != others:
                raise RuntimeError(
                    f"Output tensor at index {i} has incorrect shape: {list(out.shape)}, expected {others} but for "
                    f"dimension {dim}"
                )
        sizes = [out.size(dim) for out in outs]
        if sum(sizes) != tensor.size(dim):
            raise RuntimeError(
                f"Total size for output tensors along scatter dim {dim} does not match the source tensor size at dim "
                f"{dim}. Expected {tensor.size(dim)}, but got total size {sum(sizes)}"
            )
        for out, chunk, stream in zip(outs, tensor.split(sizes, dim), streams(given, outs), strict=True):
            with torch.cuda.device(out.device), torch.cuda.stream(stream):
                out.copy_(chunk, non_blocking=True)
        return list(outs)

    def check_inputs(tensors: Sequence[Any], dim: int) -> list[int]:
        if not tensors:
            raise RuntimeError("Expected at least one tensor to gather from")
        total = list(tensors[0].shape)
        for i, tensor in enumerate(tensors):
            if not tensor.is_cuda:
                raise RuntimeError(
                    "Expected all input tensors to be CUDA tensors, but tensor at index "
                    f"{i} has device '{tensor.device}'"
                )
            if tensor.dim() != len(total):
                raise RuntimeError(
                    "Expected all input tensors to have the same number of dimensions, but tensor at index "
                    f"{i} has {tensor.dim()} dimensions, (expected {len(total)})"
                )
            shape = list(tensor.shape)
            expected = [shape[d] if d == dim % len(total) else size for d, size in enumerate(total)]
            if shape != expected:
                raise RuntimeError(
                    f"Input tensor at index {i} has invalid shape {shape}, but expected {expected} except for "
                    f"dimension {dim}"
                )
        total[dim] = sum(tensor.shape[dim] for tensor in tensors)
        return total

    def gather(tensors: Sequence[Any], dim: int = 0, device: int | None = None) -> Any:
        check_inputs(tensors, dim)
        target = torch.device("cuda") if device is None else on(device)
        return torch.cat([tensor.to(target, non_blocking=target.type == "cuda") for tensor in tensors], dim)

    def gather_out(tensors: Sequence[Any], out: Any, dim: int = 0) -> Any:
        total = check_inputs(tensors, dim)
        if list(out.shape) != total:
            raise RuntimeError(f"Expected out tensor to have shape {total}, but got {list(out.shape)}")
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
