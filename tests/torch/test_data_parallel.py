"""torch.nn.DataParallel and torch.cuda.comm, which call NCCL and CUDA where there is a GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import halstream as hs


def test_data_parallel_trains_as_one_device_does(torch: Any) -> None:
    torch.manual_seed(2)
    model = torch.nn.Linear(4, 2)
    x = torch.randn(6, 4)
    model(x).square().sum().backward()
    right = model.weight.grad.clone()
    model.zero_grad()
    parallel = torch.nn.DataParallel(model.cuda(), device_ids=[0, 1])
    with hs.sanitize(on="raise"):
        y = parallel(x.cuda())
        y.square().sum().backward()
        assert y.device == torch.device("cuda", 0)
        assert torch.allclose(model.weight.grad.cpu(), right, atol=1e-5)


def test_F19_functions_of_comm_give_the_values(torch: Any) -> None:
    from torch.cuda import comm

    x = torch.arange(4.0, device="cuda:0")
    copies = comm.broadcast(x, [0, 1])
    assert [copy.device.index for copy in copies] == [0, 1]
    assert comm.reduce_add(copies, destination=1).tolist() == [0, 2, 4, 6]
    pieces = comm.scatter(x, [0, 1], chunk_sizes=[1, 3])
    assert [piece.tolist() for piece in pieces] == [[0], [1, 2, 3]]
    assert [piece.device.index for piece in pieces] == [0, 1]
    assert comm.gather(pieces, destination=1).tolist() == [0, 1, 2, 3]
    out = torch.zeros(4, device="cuda:1")
    assert comm.gather(pieces, out=out).data_ptr() == out.data_ptr()
    assert out.tolist() == [0, 1, 2, 3]
    (first, second) = comm.broadcast_coalesced([x, x + 1], [0, 1])
    assert [t.tolist() for t in (*first, *second)] == [[0, 1, 2, 3], [1, 2, 3, 4]] * 2
    outs = [torch.zeros(2, device="cuda:0"), torch.zeros(2, device="cuda:1")]
    comm.scatter(x, out=outs)
    assert [out.tolist() for out in outs] == [[0, 1], [2, 3]]


def test_F19_functions_of_comm_run_in_the_order_of_all_their_devices(torch: Any, held: Callable[[Any], Any]) -> None:
    from torch.cuda import comm

    x = torch.arange(4.0, device="cuda:0")
    for device in (0, 1):
        torch.cuda.synchronize(device)
    gate = held(torch.cuda.default_stream(1))
    copies = comm.broadcast(x, [0, 1])
    total = comm.reduce_add(copies, destination=0)
    pieces = comm.scatter(x, [0, 1])
    together = comm.gather(pieces, destination=0)
    x.zero_()  # ordered behind the copies, which the other device holds up
    assert not torch.cuda.default_stream(0).query()
    gate.open()
    assert total.tolist() == [0, 2, 4, 6] and together.tolist() == [0, 1, 2, 3]
