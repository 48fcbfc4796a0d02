"""Tensors on 'cuda' without a GPU: what they are, and that they compute what CPU tensors compute."""

from __future__ import annotations

import copy
import io
import pickle
import weakref
from typing import Any

import pytest


def test_a_tensor_is_a_real_cuda_tensor(torch: Any) -> None:
    x = torch.arange(6.0, device="cuda").reshape(2, 3)
    assert type(x) is torch.Tensor
    assert x.is_cuda and x.device == torch.device("cuda", 0) and x.get_device() == 0
    assert x.data_ptr() != 0 and x.t().data_ptr() == x.data_ptr() and x.t().stride() == (1, 3)
    assert x[1].storage_offset() == 3 and x[1].untyped_storage().data_ptr() == x.data_ptr()


def test_a_tensor_prints_as_on_cuda(torch: Any) -> None:
    assert repr(torch.tensor([1.5, 2.0], device="cuda")) == "tensor([1.5000, 2.0000], device='cuda:0')"


@pytest.mark.parametrize("name", ["float32", "float64", "float16", "bfloat16", "int32", "int64", "bool", "complex64"])
def test_values_go_to_the_device_and_back(torch: Any, name: str) -> None:
    values = torch.tensor([0, 1, 1, 0, 1]).to(getattr(torch, name))
    there = values.to("cuda")
    assert there.dtype == values.dtype
    assert torch.equal(there.cpu(), values)
    assert torch.equal((there == there.clone()).cpu(), torch.ones(5, dtype=torch.bool))


def test_empty_and_scalar_tensors(torch: Any) -> None:
    assert torch.empty(0, 3, device="cuda").sum().item() == 0
    assert torch.tensor(4.0, device="cuda").item() == 4
    assert torch.zeros(2, 0, device="cuda").cpu().shape == (2, 0)


def test_operators_give_what_cpu_tensors_give(torch: Any) -> None:
    a, b = torch.randn(16, 16), torch.randn(16, 16)

    def work(a: Any, b: Any) -> list[Any]:
        c = (a @ b).relu().softmax(-1)
        d = torch.cat([c, a], 1)[:, ::3].contiguous()
        return [c, d, d.sum(), c.topk(3).values, torch.where(a > 0, a, b), c.cumsum(0), a.var(1)]

    for there, here in zip(work(a.cuda(), b.cuda()), work(a, b), strict=True):
        assert torch.equal(there.cpu(), here)


def test_in_place_and_out_variants(torch: Any) -> None:
    x = torch.ones(4, device="cuda")
    y = x.view(2, 2)
    x.add_(1).mul_(3)
    assert y.tolist() == [[6, 6], [6, 6]]
    out = torch.empty(0, device="cuda")
    assert torch.add(x, x, out=out) is out and out.tolist() == [12] * 4


def test_operators_that_depend_on_data(torch: Any) -> None:
    x = torch.tensor([0.0, 3.0, 0.0, 4.0], device="cuda")
    assert x.nonzero().flatten().tolist() == [1, 3]
    assert torch.unique(x).tolist() == [0, 3, 4]
    assert x[x > 1].tolist() == [3, 4]
    assert bool((x > 3).any())


def test_mixed_devices_are_refused_with_torchs_text(torch: Any) -> None:
    with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
        torch.ones(3, device="cuda") + torch.ones(3)
    assert (torch.ones(3, device="cuda") + torch.tensor(1.0)).tolist() == [2, 2, 2]


def test_random_numbers_depend_on_the_seed_only(torch: Any) -> None:
    def numbers() -> list[Any]:
        torch.cuda.manual_seed(5)
        return [
            torch.rand(4, device="cuda").cpu(),
            torch.randn(3, device="cuda").cpu(),
            torch.randperm(8, device="cuda").cpu(),
        ]

    for one, other in zip(numbers(), numbers(), strict=True):
        assert torch.equal(one, other)
    assert not torch.equal(torch.rand(8, device="cuda").cpu(), torch.rand(8, device="cuda").cpu())


def test_generators_share_the_state_that_graphsafe_get_state_gave(torch: Any) -> None:
    generator = torch.Generator("cuda").manual_seed(3)
    shared, apart = generator.graphsafe_get_state(), generator.clone_state()
    first = torch.rand(4, device="cuda", generator=generator)
    assert shared.get_offset() == generator.get_offset() != apart.get_offset()
    assert torch.equal(torch.rand(4, device="cuda", generator=apart), first)
    generator.graphsafe_set_state(torch.Generator("cuda").manual_seed(3))
    assert torch.equal(torch.rand(4, device="cuda", generator=generator), first)
    with pytest.raises(RuntimeError, match="CUDA"):
        generator.graphsafe_set_state(torch.Generator())


def test_the_state_of_the_generator_can_be_saved(torch: Any) -> None:
    torch.cuda.manual_seed(9)
    assert torch.cuda.initial_seed() == 9
    state = torch.cuda.get_rng_state()
    first = torch.rand(4, device="cuda").cpu()
    torch.cuda.set_rng_state(state)
    assert torch.equal(torch.rand(4, device="cuda").cpu(), first)
    generator = torch.Generator("cuda").manual_seed(1)
    again = torch.Generator("cuda").manual_seed(1)
    assert torch.equal(torch.rand(3, device="cuda", generator=generator), torch.rand(3, device="cuda", generator=again))


def test_modules_move_and_keep_their_state(torch: Any) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.BatchNorm1d(4))
    kept = {name: value.clone() for name, value in model.state_dict().items()}
    model.cuda()
    assert all(value.is_cuda for value in model.state_dict().values())
    assert isinstance(model[0].weight, torch.nn.Parameter) and model[0].weight.requires_grad
    model.cpu()
    assert all(torch.equal(value, kept[name]) for name, value in model.state_dict().items())


def test_save_and_load(torch: Any) -> None:
    file = io.BytesIO()
    torch.save({"x": torch.arange(3, device="cuda"), "n": 1}, file)
    file.seek(0)
    found = torch.load(file)
    assert found["x"].is_cuda and found["x"].tolist() == [0, 1, 2]
    file.seek(0)
    assert torch.load(file, map_location="cpu")["x"].device.type == "cpu"
    file = io.BytesIO()
    torch.save(torch.ones(2), file)
    file.seek(0)
    assert torch.load(file, map_location="cuda:0").is_cuda


def test_copies_pickles_hashes_and_weak_references(torch: Any) -> None:
    x = torch.arange(4.0, device="cuda", requires_grad=True)
    y = copy.deepcopy(x)
    assert y.is_cuda and y.data_ptr() != x.data_ptr() and torch.equal(x, y)
    z = pickle.loads(pickle.dumps(x.detach()))
    assert z.is_cuda and z.tolist() == [0, 1, 2, 3]
    assert len({x, x, y}) == 2
    gone = weakref.ref(y)
    del y
    assert gone() is None


def test_storages_move(torch: Any) -> None:
    storage = torch.arange(4, dtype=torch.uint8).untyped_storage()
    there = storage.cuda()
    assert there.device.type == "cuda" and there.cpu().tolist() == [0, 1, 2, 3]
    assert storage.to(device=torch.device("cuda")).device.type == "cuda"


def test_a_data_loader_pins_its_batches(torch: Any) -> None:
    data = torch.utils.data.TensorDataset(torch.arange(12.0).reshape(6, 2))
    loader = torch.utils.data.DataLoader(data, batch_size=2, pin_memory=True)
    found = []
    for (batch,) in loader:
        assert batch.is_pinned()
        found.append(batch.to("cuda", non_blocking=True).sum())
    assert [float(x) for x in found] == [6, 22, 38]


def test_a_refused_operator_says_so_by_name(torch: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"aten::_cudnn_rnn|cudnn"):
        torch.ops.aten._cudnn_rnn_flatten_weight([torch.ones(4, device="cuda")], 1, 1, 0, 1, 0, 1, False, False)
