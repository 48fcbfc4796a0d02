"""Operators that need more than their CPU kernel: kernels of CUDA's own, random numbers, refusals and errors."""

from __future__ import annotations

from typing import Any

import pytest


def _module(torch: Any, kind: str) -> tuple[Any, Any]:
    on_cpu = getattr(torch.nn, kind)(5, 6, 2, batch_first=True)
    on_cuda = getattr(torch.nn, kind)(5, 6, 2, batch_first=True)
    on_cuda.load_state_dict(on_cpu.state_dict())
    return on_cpu, on_cuda.cuda()


def test_packed_sequences(torch: Any) -> None:
    from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

    layer = torch.nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True)
    x = torch.randn(2, 5, 3)

    def run(device: str) -> tuple[Any, Any]:
        layer.to(device).zero_grad()
        packed = pack_padded_sequence(x.to(device), [5, 3], batch_first=True)
        assert packed.batch_sizes.device.type == "cpu"
        result = pad_packed_sequence(layer(packed)[0], batch_first=True)[0]
        result.square().sum().backward()
        return result.detach().cpu(), layer.weight_ih_l0.grad.cpu().clone()

    here, there = run("cpu"), run("cuda")
    assert torch.allclose(here[0], there[0], rtol=1e-5)
    assert torch.allclose(here[1], there[1], rtol=1e-5)


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_recurrent_layers_give_the_results_and_gradients_of_the_cpu(torch: Any, kind: str) -> None:
    on_cpu, on_cuda = _module(torch, kind)
    x = torch.randn(3, 7, 5)
    for net, data in ((on_cpu, x), (on_cuda, x.cuda())):
        net(data)[0].pow(2).sum().backward()
    torch.testing.assert_close(on_cuda(x.cuda())[0].cpu(), on_cpu(x)[0], rtol=1e-4, atol=1e-5)
    for one, other in zip(on_cpu.parameters(), on_cuda.parameters(), strict=True):
        torch.testing.assert_close(other.grad.cpu(), one.grad, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
@pytest.mark.parametrize("name", ["mse_loss", "smooth_l1_loss", "huber_loss"])
def test_losses_with_each_reduction(torch: Any, name: str, reduction: str) -> None:
    loss = getattr(torch.nn.functional, name)
    a, b = torch.randn(3, 4), torch.randn(3, 4)
    torch.testing.assert_close(loss(a.cuda(), b.cuda(), reduction=reduction).cpu(), loss(a, b, reduction=reduction))


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(torch: Any, mode: str) -> None:
    indices, offsets = torch.tensor([1, 2, 0, 3, 1]), torch.tensor([0, 2])
    weight = torch.randn(5, 4, requires_grad=True)
    on_cuda = weight.detach().cuda().requires_grad_()
    bag = torch.nn.functional.embedding_bag
    expected = bag(indices, weight, offsets, mode=mode)
    result = bag(indices.cuda(), on_cuda, offsets.cuda(), mode=mode)
    torch.testing.assert_close(result.detach().cpu(), expected.detach())
    expected.sum().backward()
    result.sum().backward()
    torch.testing.assert_close(on_cuda.grad.cpu(), weight.grad)


def test_random_operators_leave_the_generator_of_the_cpu_alone(torch: Any) -> None:
    before = torch.get_rng_state()
    torch.nn.functional.dropout(torch.ones(9, device="cuda"))
    torch.randn(9, device="cuda")
    torch.cuda.synchronize()
    assert torch.equal(before, torch.get_rng_state())


def test_shapes_are_checked_at_the_call(torch: Any) -> None:
    x = torch.ones(4, 5, device="cuda")
    for call in (lambda: x @ x, lambda: x + torch.ones(3, device="cuda"), lambda: x.add_(torch.ones(3, device="cuda"))):
        with pytest.raises(RuntimeError) as caught:
            call()
        assert not isinstance(caught.value, torch.AcceleratorError)


def test_a_singular_matrix_is_reported_at_the_call(torch: Any) -> None:
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        torch.linalg.inv(torch.zeros(2, 2, device="cuda"))


def test_tensors_of_other_devices_are_refused_as_on_cuda(torch: Any) -> None:
    x = torch.ones(2, 2, device="cuda")
    with pytest.raises(RuntimeError, match="found at least two devices, cuda:0 and cpu"):
        x + torch.ones(2, 2)
    with pytest.raises(RuntimeError, match="mat2 is on cpu, different from other tensors on cuda:0"):
        x @ torch.ones(2, 2)
    assert (x + torch.tensor(2.0)).sum().item() == 12  # a CPU tensor of no dimensions is a number


@pytest.mark.parametrize("kind", ["layer", "batch", "instance", "group"])
def test_normalizations_in_16_bits(torch: Any, kind: str) -> None:
    """CUDA keeps their statistics in 32 bits, the CPU in those of the input."""
    torch.manual_seed(1)
    layers = {
        "layer": lambda: torch.nn.LayerNorm(6),
        "batch": lambda: torch.nn.BatchNorm1d(4),
        "instance": lambda: torch.nn.InstanceNorm1d(4, affine=True),
        "group": lambda: torch.nn.GroupNorm(2, 4),
    }
    layer = layers[kind]()
    x = torch.randn(3, 4, 6)

    def gradients(device: str, dtype: Any) -> list[Any]:
        there = layer.to(device, dtype)
        there.zero_grad()
        given = x.to(device, dtype).detach().requires_grad_()
        (there(given) * torch.arange(6.0, dtype=dtype, device=device)).sum().backward()
        torch.cuda.synchronize()
        return [t.grad.detach().cpu().float().clone() for t in (given, there.weight, there.bias)]

    right = gradients("cpu", torch.float32)
    for got, wanted in zip(gradients("cuda", torch.bfloat16), right, strict=True):
        assert torch.allclose(got, wanted, rtol=0.05, atol=0.5)


@pytest.mark.parametrize("name", ["mm", "bmm", "addmm", "baddbmm"])
def test_products_in_a_wider_type_into_a_given_tensor(torch: Any, name: str) -> None:
    batch = (2,) if "bmm" in name else ()
    a, b = torch.randn(*batch, 3, 4).bfloat16(), torch.randn(*batch, 4, 5).bfloat16()
    added = (torch.randn(*batch, 3, 5),) if "add" in name else ()
    call = getattr(torch, name)
    given = [x.cuda() for x in (*added, a, b)]
    out = torch.empty(0, device="cuda")
    assert call(*given, out_dtype=torch.float32, out=out) is out
    torch.testing.assert_close(out.cpu(), call(*added, a.float(), b.float()))
    with pytest.raises(RuntimeError, match="out_dtype must be the same as the dtype of the provided out tensor"):
        call(*given, out_dtype=torch.float32, out=out.bfloat16())


def test_margins_of_one_sample_have_no_dimension(torch: Any) -> None:
    x, target = torch.randn(4), torch.tensor([0, 2, -1, 1])
    loss = torch.nn.functional.multilabel_margin_loss
    found = loss(x.cuda(), target.cuda(), reduction="none")
    torch.testing.assert_close(found.cpu(), loss(x, target, reduction="none"))


@pytest.mark.filterwarnings("ignore:.torch.jit:FutureWarning", "ignore:.torch.jit:DeprecationWarning")
def test_F24_scripted_functions_are_not_fused(torch: Any) -> None:
    @torch.jit.script  # type: ignore[untyped-decorator]
    def f(x):  # type: ignore[no-untyped-def]
        return torch.tanh(x * 2 + 1) * torch.sigmoid(x)

    x = torch.randn(8, requires_grad=True)
    y = x.detach().cuda().requires_grad_()
    with torch.jit.fuser("fuser1"):  # which the program may ask for
        for _ in range(3):  # the executor fuses from the second run on
            f(y).sum().backward()
            (torch.tanh(x * 2 + 1) * torch.sigmoid(x)).sum().backward()
    torch.testing.assert_close(y.grad.cpu(), x.grad)
