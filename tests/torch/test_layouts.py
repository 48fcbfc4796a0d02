"""Tensors of other layouts on the device: refused where they are made, by the operator's name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

ROWS, COLUMNS, VALUES = [0, 1, 2], [0, 1], [1.0, 2.0]
BLOCKS = [[[1.0]], [[2.0]]]


def _parts(torch: Any, values: Any, device: str) -> tuple[Any, Any, Any]:
    return (
        torch.tensor(ROWS, device=device),
        torch.tensor(COLUMNS, device=device),
        torch.tensor(values, device=device),
    )


def _compressed(of: str, values: Any, given: str, *, unsafe: bool = False) -> Callable[[Any], Any]:
    """Return a function that makes a compressed tensor on the device from lists, CPU tensors or CUDA tensors."""

    def make(torch: Any) -> Any:
        parts = (ROWS, COLUMNS, values) if given == "lists" else _parts(torch, values, given)
        if unsafe:
            layout = getattr(torch, f"sparse_{of}")
            return torch.ops.aten._sparse_compressed_tensor_unsafe(*parts, (2, 2), layout=layout, device="cuda")
        return getattr(torch, f"sparse_{of}_tensor")(*parts, (2, 2), device="cuda")

    return make


def _nested(torch: Any, device: str | None) -> Any:
    return torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], device=device)


MAKERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    **{
        f"{of} of {given}": (_compressed(of, values, given), "sparse_compressed_tensor")
        for of, values in [("csr", VALUES), ("csc", VALUES), ("bsr", BLOCKS), ("bsc", BLOCKS)]
        for given in ["lists", "cpu", "cuda"]
    },
    "csr without checks": (_compressed("csr", VALUES, "cuda", unsafe=True), "_sparse_compressed_tensor_unsafe"),
    "bsc without checks": (_compressed("bsc", BLOCKS, "cuda", unsafe=True), "_sparse_compressed_tensor_unsafe"),
    "compressed without a size": (
        lambda torch: torch.sparse_compressed_tensor(*_parts(torch, VALUES, "cuda"), layout=torch.sparse_csr),
        "sparse_compressed_tensor",
    ),
    "empty csr": (lambda torch: torch.empty(2, 2, layout=torch.sparse_csr, device="cuda"), "empty"),
    "zeros coo": (lambda torch: torch.zeros(2, 2, layout=torch.sparse_coo, device="cuda"), "empty"),
    "coo": (
        lambda torch: torch.sparse_coo_tensor([[0], [1]], [1.0], (2, 2), device="cuda"),
        "sparse_coo_tensor",
    ),
    "coo of a size": (lambda torch: torch.sparse_coo_tensor((2, 2), device="cuda"), "sparse_coo_tensor"),
    "to_sparse": (lambda torch: torch.eye(2, device="cuda").to_sparse(), "_to_sparse"),
    "to_sparse_csr": (lambda torch: torch.eye(2, device="cuda").to_sparse_csr(), "_to_sparse_csr"),
    "to_sparse_csc": (lambda torch: torch.eye(2, device="cuda").to_sparse_csc(), "_to_sparse_csc"),
    "to_sparse_bsr": (lambda torch: torch.eye(2, device="cuda").to_sparse_bsr((1, 1)), "_to_sparse_bsr"),
    "to_sparse_bsc": (lambda torch: torch.eye(2, device="cuda").to_sparse_bsc((1, 1)), "_to_sparse_bsc"),
    "a csr tensor of the CPU": (lambda torch: torch.eye(2).to_sparse_csr().to("cuda"), "_to_copy"),
    "a bsr tensor of the CPU": (lambda torch: torch.eye(2).to_sparse_bsr((1, 1)).cuda(), "_to_copy"),
    "a coo tensor of the CPU": (lambda torch: torch.eye(2).to_sparse().cuda(), "_to_copy"),
    "nested": (lambda torch: _nested(torch, "cuda"), "_nested_tensor_from_tensor_list"),
    "nested of tensors": (
        lambda torch: torch.nested.as_nested_tensor([torch.ones(2, device="cuda")]),
        "_nested_tensor_from_tensor_list",
    ),
    "nested of the CPU": (lambda torch: _nested(torch, "cpu").to("cuda"), "_to_copy"),
    "nested from padded": (
        lambda torch: torch._nested_from_padded(torch.ones(2, 3, device="cuda"), torch.tensor([[2], [3]])),
        "_nested_from_padded",
    ),
    "nested view": (
        lambda torch: torch._nested_view_from_buffer(
            torch.ones(5, device="cuda"), torch.tensor([[2], [3]]), torch.tensor([[1], [1]]), torch.tensor([0, 2])
        ),
        "_nested_view_from_buffer",
    ),
    "quantized": (
        lambda torch: torch.quantize_per_tensor(torch.eye(2, device="cuda"), 1.0, 0, torch.qint8),
        "quantize_per_tensor",
    ),
}


@pytest.mark.parametrize("what", MAKERS)
@pytest.mark.filterwarnings("ignore:.*(Sparse|sparse|nested|quantize|Quantiz).*")
def test_F25_a_tensor_of_another_layout_is_refused_where_it_is_made(torch: Any, what: str) -> None:
    make, name = MAKERS[what]
    with pytest.raises(NotImplementedError) as raised:
        make(torch)
    text = str(raised.value).splitlines()[0]
    assert text.startswith(f"aten::{name} is not supported on halstream's CUDA device: "), text
    instead = text.rpartition("; ")[2]
    assert instead in ("use a dense tensor, or the CPU", "use padded tensors", "use fake quantization, or the CPU")


@pytest.mark.filterwarnings("ignore:.*(Sparse|sparse|nested).*")
def test_F25_the_cpu_makes_them_as_before(torch: Any) -> None:
    csr = torch.sparse_csr_tensor(ROWS, COLUMNS, VALUES, (2, 2))
    assert csr.to_dense().tolist() == [[1.0, 0.0], [0.0, 2.0]]
    assert csr.to(torch.float64).dtype == torch.float64
    for device in ["cpu", None]:
        assert [part.numel() for part in _nested(torch, device).unbind()] == [2, 3]


def test_F25_jagged_tensors_are_made_of_dense_ones(torch: Any) -> None:
    jagged = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged, device="cuda")
    assert (jagged * 2).values().tolist() == [2.0, 4.0, 6.0]
