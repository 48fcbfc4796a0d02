"""Sparse, nested and quantized tensors on the device: the CPU's results, and accesses of what they consist of."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import halstream as hs
import pytest

pytestmark = pytest.mark.filterwarnings(
    "ignore:.*(Sparse|sparse|nested|quantize|Quantiz).*", "ignore:.*_typed_storage.*"
)

#: What makes a tensor of each layout from a dense one of even sizes.
LAYOUTS: dict[str, Callable[[Any], Any]] = {
    "coo": lambda dense: dense.to_sparse(),
    "hybrid": lambda dense: dense.to_sparse(1),
    "csr": lambda dense: dense.to_sparse_csr(),
    "csc": lambda dense: dense.to_sparse_csc(),
    "bsr": lambda dense: dense.to_sparse_bsr((2, 2)),
    "bsc": lambda dense: dense.to_sparse_bsc((2, 2)),
}
SPARSE = pytest.mark.parametrize("layout", LAYOUTS)


def _matrix(torch: Any) -> Any:
    return torch.tensor([[0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 0.0, 3.0]])


@SPARSE
def test_F25_a_sparse_tensor_is_moved_to_the_device_and_back(torch: Any, layout: str) -> None:
    dense = _matrix(torch)
    there = LAYOUTS[layout](dense).cuda()
    assert there.is_cuda and there.layout == LAYOUTS[layout](dense).layout
    assert there.values().is_cuda if layout != "coo" and layout != "hybrid" else there._values().is_cuda
    back = there.cpu()
    assert back.layout == there.layout
    assert torch.equal(back.to_dense(), dense)
    assert torch.equal(there.to_dense().cpu(), dense)
    assert torch.equal(there.clone().to(torch.float64).to_dense().cpu(), dense.double())
    assert "device='cuda:0'" in repr(there)


@SPARSE
def test_F25_a_sparse_tensor_is_made_on_the_device(torch: Any, layout: str) -> None:
    dense = _matrix(torch)
    there, here = LAYOUTS[layout](dense.cuda()), LAYOUTS[layout](dense)
    assert there._nnz() == here._nnz()
    assert torch.equal(there.cpu().to_dense(), dense)


@pytest.mark.parametrize("given", ["lists", "cpu", "cuda"])
@pytest.mark.parametrize("of", ["coo", "csr", "csc"])
def test_F25_sparse_tensors_are_made_of_indices_and_values(torch: Any, of: str, given: str) -> None:
    lists: tuple[Any, ...] = ([[0, 1], [1, 0]], [5.0, 6.0]) if of == "coo" else ([0, 1, 2], [1, 0], [5.0, 6.0])
    parts = lists if given == "lists" else tuple(torch.tensor(part, device=given) for part in lists)
    made = getattr(torch, f"sparse_{of}_tensor")(*parts, (2, 2), device="cuda")
    assert made.is_cuda
    assert made.to_dense().tolist() == ([[0.0, 5.0], [6.0, 0.0]] if of != "csc" else [[0.0, 6.0], [5.0, 0.0]])


OPERATORS: dict[str, tuple[Callable[[Any, Any], Any], set[str]]] = {
    "product with a matrix": (lambda torch, s: s @ torch.arange(8.0, device=s.device).view(4, 2), {"hybrid", "bsc"}),
    "product with a vector": (lambda torch, s: s @ torch.arange(4.0, device=s.device), {"hybrid", "csc", "bsc", "bsr"}),
    "addmm": (
        lambda torch, s: torch.addmm(torch.ones(2, 2, device=s.device), s, torch.ones(4, 2, device=s.device), alpha=2),
        {"hybrid", "bsc"},
    ),
    "product of two": (lambda torch, s: torch.sparse.mm(s, s.t()), {"hybrid", "csr", "csc", "bsr", "bsc"}),
    "sum of two": (lambda torch, s: s + s * 2, {"csc", "bsr", "bsc"}),
    "with a dense one": (lambda torch, s: torch.ones(2, 4, device=s.device) + s, {"csr", "csc", "bsr", "bsc"}),
    "into a dense one": (
        lambda torch, s: torch.ones(2, 4, device=s.device).add_(s, alpha=3),
        {"csr", "csc", "bsr", "bsc"},
    ),
    "product of elements": (lambda torch, s: s * s, {"csc", "bsr", "bsc"}),
    "times a number": (lambda torch, s: s * 3, set()),
    "in place": (lambda torch, s: s.add_(s).mul_(2), {"csr", "csc", "bsr", "bsc"}),
    "sum": (lambda torch, s: s.sum(), {"bsr", "bsc"}),
    "sum of rows": (lambda torch, s: torch.sparse.sum(s, 1), {"hybrid", "csr", "csc", "bsr", "bsc"}),
    "transposed": (lambda torch, s: s.t(), {"hybrid"}),
    "a row": (lambda torch, s: s[1], {"csc", "bsr", "bsc"}),
    "rows by index": (
        lambda torch, s: s.index_select(0, torch.tensor([1, 0], device=s.device)),
        {"csr", "csc", "bsr", "bsc"},
    ),
    "softmax": (lambda torch, s: torch.sparse.softmax(s, 1), {"hybrid", "csr", "csc", "bsr", "bsc"}),
    "mask": (lambda torch, s: torch.ones(2, 4, device=s.device).sparse_mask(s), set()),
    "sampled product": (
        lambda torch, s: torch.sparse.sampled_addmm(
            s, torch.ones(2, 3, device=s.device), torch.ones(3, 4, device=s.device)
        ),
        {"coo", "hybrid", "csc", "bsr", "bsc"},
    ),
    "joined": (lambda torch, s: torch.cat([s, s]), {"csr", "csc", "bsr", "bsc"}),
}


@pytest.mark.parametrize(
    ("what", "layout"),
    [(what, layout) for what, (_, without) in OPERATORS.items() for layout in LAYOUTS if layout not in without],
)
def test_F25_operators_of_sparse_tensors_have_the_results_of_the_cpu(torch: Any, what: str, layout: str) -> None:
    function, _ = OPERATORS[what]
    wanted = function(torch, LAYOUTS[layout](_matrix(torch)))
    found = function(torch, LAYOUTS[layout](_matrix(torch).cuda()))
    assert found.is_cuda
    assert found.layout == wanted.layout
    dense = [one.to_dense() if one.layout != torch.strided else one for one in (found.cpu(), wanted)]
    torch.testing.assert_close(*dense)


@pytest.mark.parametrize("type_name", ["float16", "bfloat16"])
@pytest.mark.parametrize("layout", ["coo", "csr"])
def test_F25_products_of_sparse_matrices_in_16_bits(torch: Any, layout: str, type_name: str) -> None:
    dense = _matrix(torch).to(getattr(torch, type_name))
    other = torch.arange(8.0, dtype=dense.dtype).view(4, 2)
    assert torch.equal((LAYOUTS[layout](dense.cuda()) @ other.cuda()).cpu(), dense @ other)


def test_F25_coalescing_adds_what_has_one_index(torch: Any) -> None:
    s = torch.sparse_coo_tensor([[0, 1, 0], [1, 0, 1]], [1.0, 2.0, 3.0], (2, 2), device="cuda")
    assert not s.is_coalesced()
    s = s.coalesce()
    assert s.is_coalesced()
    assert s.indices().tolist() == [[0, 1], [1, 0]]
    assert s.values().tolist() == [4.0, 2.0]


def test_F25_gradients_of_a_sparse_product(torch: Any) -> None:
    def gradients(device: str) -> list[Any]:
        s = _matrix(torch).to(device).to_sparse().requires_grad_()
        x = torch.arange(8.0, device=device).view(4, 2).requires_grad_()
        torch.sparse.mm(s, x).square().sum().backward()
        return [s.grad.to_dense().cpu(), x.grad.cpu()]

    torch.testing.assert_close(gradients("cuda"), gradients("cpu"))


@pytest.mark.parametrize("name", ["SparseAdam", "SGD", "Adagrad"])
def test_F25_an_embedding_with_sparse_gradients_is_trained(torch: Any, name: str) -> None:
    here = torch.nn.Embedding(5, 3, sparse=True)
    there = copy.deepcopy(here).cuda()
    for layer, device in ((here, "cpu"), (there, "cuda")):
        optimizer = getattr(torch.optim, name)(layer.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            layer(torch.tensor([1, 2, 1], device=device)).square().sum().backward()
            assert layer.weight.grad.is_sparse
            optimizer.step()
    torch.testing.assert_close(there.weight.detach().cpu(), here.weight.detach())


def test_F25_a_module_with_a_sparse_buffer_is_moved(torch: Any) -> None:
    module = torch.nn.Module()
    module.register_buffer("alignment_heads", _matrix(torch).to_sparse())
    module.cuda()
    assert module.alignment_heads.is_cuda
    other = copy.deepcopy(module)
    other.load_state_dict(module.state_dict())
    assert torch.equal(other.cpu().alignment_heads.to_dense(), _matrix(torch))


def test_F25_a_tensor_that_cannot_be_moved_is_named_with_its_module(torch: Any) -> None:
    module = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Module())
    module[1].register_buffer("packed", torch.ones(2, 2).to_mkldnn())
    with pytest.raises(NotImplementedError, match=r"\(the buffer '1.packed' of Sequential\)"):
        module.cuda()


@pytest.mark.parametrize("waits", [True, False])
@pytest.mark.parametrize("layout", ["coo", "csr", "bsr"])
def test_F25_a_missing_wait_before_a_sparse_product_is_reported(torch: Any, layout: str, waits: bool) -> None:
    sparse, x = LAYOUTS[layout](_matrix(torch).cuda()), torch.ones(4, 2, device="cuda")
    values = sparse._values() if layout == "coo" else sparse.values()
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        values.mul_(2)
        if waits:
            side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            sparse @ x
        torch.cuda.synchronize()
    assert bool(report.races) is not waits, str(report)


@pytest.mark.parametrize("waits", [True, False])
def test_F25_a_missing_wait_after_a_sparse_product_is_reported(torch: Any, waits: bool) -> None:
    """The product makes a sparse tensor, for which the host waits here; the program may not rely on that."""
    sparse = _matrix(torch).cuda().to_sparse()
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with hs.sanitize(on="collect") as report:
        with torch.cuda.stream(side):
            product = torch.sparse.mm(sparse, sparse.t())
        if waits:
            torch.cuda.current_stream().wait_stream(side)
        product._values().mul(2)
        torch.cuda.synchronize()
    assert bool(report.races) is not waits, str(report)


def test_F25_a_sparse_product_is_captured(torch: Any, captured: Callable[..., Any]) -> None:
    sparse, x = _matrix(torch).cuda().to_sparse_csr(), torch.ones(4, 2, device="cuda")
    graph, product = captured(lambda: sparse @ x)
    x.fill_(3)
    graph.replay()
    assert product.tolist() == [[3.0, 3.0], [15.0, 15.0]]


def test_F25_a_result_whose_size_depends_on_values_is_not_captured(torch: Any, captured: Callable[..., Any]) -> None:
    sparse = torch.sparse_coo_tensor([[0, 0], [1, 1]], [1.0, 2.0], (2, 2), device="cuda")
    with pytest.raises(torch.AcceleratorError, match="capture"):
        captured(sparse.coalesce)


def test_F25_what_the_cpu_has_no_kernel_for_is_refused_by_name(torch: Any) -> None:
    matrix = torch.ones(32, 32, device="cuda", dtype=torch.float16)
    with pytest.raises(NotImplementedError, match="aten::_sparse_semi_structured_tile is not supported on halstream's"):
        torch._sparse_semi_structured_tile(matrix)


def _nested(torch: Any, device: str | None) -> Any:
    return torch.nested.nested_tensor([torch.ones(2, 3), torch.arange(9.0).view(3, 3)], device=device)


NESTED: dict[str, Callable[[Any, Any], Any]] = {
    "as it is": lambda torch, n: n,
    "sum of two": lambda torch, n: n + n,
    "times numbers": lambda torch, n: n * 2,
    "layer": lambda torch, n: torch.nn.functional.linear(n, torch.ones(2, 3, device=n.device)),
    "normalized": lambda torch, n: torch.nn.functional.layer_norm(n, (3,), *torch.ones(2, 3, device=n.device)),
    "softmax": lambda torch, n: n.softmax(-1),
    "transposed": lambda torch, n: n.transpose(1, 2),
    "product": lambda torch, n: torch.bmm(n, n.transpose(1, 2)),
}


@pytest.mark.parametrize("what", NESTED)
def test_F25_operators_of_nested_tensors_have_the_results_of_the_cpu(torch: Any, what: str) -> None:
    wanted, found = (NESTED[what](torch, _nested(torch, device)) for device in ("cpu", "cuda"))
    assert found.is_nested and found.is_cuda
    for one, other in zip(found.unbind(), wanted.unbind(), strict=True):
        torch.testing.assert_close(one.cpu(), other)


def test_F25_nested_tensors_are_moved_padded_and_made_of_padded_ones(torch: Any) -> None:
    there = _nested(torch, None).cuda()
    padded = there.to_padded_tensor(7.0)
    assert padded.is_cuda
    assert torch.equal(padded.cpu(), _nested(torch, None).to_padded_tensor(7.0))
    again = torch._nested_from_padded(padded, torch.tensor([[2, 3], [3, 3]]))
    assert torch.equal(again.cpu().to_padded_tensor(7.0), padded.cpu())


def test_F25_attention_of_nested_tensors(torch: Any) -> None:
    parts = [torch.randn(2, n, 4, device="cuda") for n in (3, 5)]
    nested = torch.nested.nested_tensor(parts)
    attention = torch.nn.functional.scaled_dot_product_attention
    for part, found in zip(parts, attention(nested, nested, nested).unbind(), strict=True):
        torch.testing.assert_close(found, attention(part, part, part))


def test_F25_jagged_tensors_are_made_of_dense_ones(torch: Any) -> None:
    jagged = torch.nested.nested_tensor([[1.0, 2.0], [3.0]], layout=torch.jagged, device="cuda")
    assert (jagged * 2).values().tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("per", ["tensor", "channel"])
def test_F25_quantized_tensors(torch: Any, per: str) -> None:
    def quantized(device: str) -> Any:
        dense = _matrix(torch).to(device)
        if per == "tensor":
            return torch.quantize_per_tensor(dense, 0.5, 1, torch.qint8)
        scales, zeros = torch.tensor([0.5, 1.0], device=device), torch.tensor([0, 1], device=device)
        return torch.quantize_per_channel(dense, scales, zeros, 0, torch.qint8)

    there = quantized("cuda")
    assert there.is_cuda
    assert torch.equal(there.int_repr().cpu(), quantized("cpu").int_repr())
    assert torch.equal(there.dequantize().cpu(), _matrix(torch))
    assert torch.equal(there.cpu().dequantize(), _matrix(torch))
    assert torch.equal(quantized("cpu").cuda().dequantize().cpu(), _matrix(torch))


def test_F25_operators_of_quantized_tensors(torch: Any) -> None:
    there = torch.quantize_per_tensor(_matrix(torch).sub(1).cuda(), 0.5, 1, torch.quint8)
    assert torch.equal(torch.relu(there).dequantize().cpu(), _matrix(torch).sub(1).clamp(min=-0.5).relu())
    assert torch.equal(there.clone().dequantize(), there.dequantize())
    assert there[1].dequantize().tolist() == [1.0, -0.5, -0.5, 2.0]
