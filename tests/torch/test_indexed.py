"""Operators with an index on two streams: what they access of a tensor comes from the values of the index."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import halstream as hs
import pytest
from halstream.testing import schedule

pytestmark = pytest.mark.filterwarnings("ignore")

Use = Callable[[Any, Any, Any], Any]

#: What one stream does with rows of `kv`, by a name: torch, `kv` (8 rows of 6 numbers), and a list of rows.
WRITES: dict[str, Use] = {
    "kv[i] = x": lambda torch, kv, i: kv.__setitem__(i, torch.ones(len(i), 6, device="cuda")),
    "kv[i] = 2": lambda torch, kv, i: kv.__setitem__(i, 2.0),
    "kv[mask] = 2": lambda torch, kv, i: kv.__setitem__(mask(torch, i), 2.0),
    "masked_fill_": lambda torch, kv, i: kv.masked_fill_(mask(torch, i)[:, None], 2.0),
    "masked_scatter_": lambda torch, kv, i: kv.masked_scatter_(
        mask(torch, i)[:, None].expand(8, 6), torch.ones(48, device="cuda")
    ),
    "kv[i, :3] = 2": lambda torch, kv, i: kv[:, :3].__setitem__(i, 2.0),
    "kv[i, j] = 2": lambda torch, kv, i: kv.__setitem__((i, torch.arange(len(i), device="cuda")), 2.0),
    "kv[..., j] = 2": lambda torch, kv, i: kv.t().__setitem__((slice(None), i), 2.0),
    "index_put_, accumulate": lambda torch, kv, i: kv.index_put_((i,), torch.ones(len(i), 6, device="cuda"), True),
    "index_copy_": lambda torch, kv, i: kv.index_copy_(0, i, torch.ones(len(i), 6, device="cuda")),
    "index_add_": lambda torch, kv, i: kv.index_add_(0, i, torch.ones(len(i), 6, device="cuda")),
    "index_fill_": lambda torch, kv, i: kv.index_fill_(0, i, 3),
    "scatter_": lambda torch, kv, i: kv.scatter_(0, spread(i), 5.0),
    "scatter_, source": lambda torch, kv, i: kv.scatter_(0, spread(i), torch.ones(len(i), 6, device="cuda")),
    "scatter_add_": lambda torch, kv, i: kv.scatter_add_(0, spread(i), torch.ones(len(i), 6, device="cuda")),
    "scatter_reduce_": lambda torch, kv, i: kv.scatter_reduce_(
        0, spread(i), torch.ones(len(i), 6, device="cuda"), reduce="amax"
    ),
    "put_": lambda torch, kv, i: kv.put_(i * 6, torch.ones(len(i), device="cuda")),
}
READS: dict[str, Use] = {
    "kv[i]": lambda torch, kv, i: kv[i].sum(),
    "kv[mask]": lambda torch, kv, i: kv[mask(torch, i)],
    "kv[i, j]": lambda torch, kv, i: kv[i, torch.zeros_like(i)],
    "kv[i - 8]": lambda torch, kv, i: kv[i - 8],
    "index_select": lambda torch, kv, i: kv.index_select(0, i),
    "index_select, out": lambda torch, kv, i: torch.index_select(kv, 0, i, out=torch.empty(len(i), 6, device="cuda")),
    "gather": lambda torch, kv, i: kv.gather(0, spread(i)),
    "take": lambda torch, kv, i: kv.take(i * 6),
    "embedding": lambda torch, kv, i: torch.nn.functional.embedding(i, kv),
    "embedding_bag": lambda torch, kv, i: torch.nn.functional.embedding_bag(
        i, kv, torch.zeros(1, dtype=torch.long, device="cuda")
    ),
    "values by heads": lambda torch, kv, i: kv.view(8, 2, 3).transpose(0, 1)[:, i],
}


def spread(index: Any) -> Any:
    return index[:, None].expand(-1, 6)


def mask(torch: Any, index: Any) -> Any:
    return torch.zeros(8, dtype=torch.bool, device="cuda").index_fill_(0, index, True)


def reported(torch: Any, write: Use, mine: list[int], read: Use, theirs: list[int], *, threads: bool = False) -> Any:
    """Return the report on two streams, one of which writes to rows, and the other one reads rows."""
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    kv = torch.zeros(8, 6, device="cuda")
    of_mine, of_theirs = torch.tensor(mine, device="cuda"), torch.tensor(theirs, device="cuda")
    torch.cuda.synchronize()
    with nullcontext() if threads else schedule("fifo"), hs.sanitize(on="collect") as report:
        with torch.cuda.stream(first):
            write(torch, kv, of_mine)
        with torch.cuda.stream(second):
            read(torch, kv, of_theirs)
        torch.cuda.synchronize()
    return report


@pytest.mark.parametrize("name", WRITES)
def test_V45_rows_that_an_index_names_for_a_write(torch: Any, name: str) -> None:
    assert not reported(torch, WRITES[name], [0, 2, 3], READS["kv[i]"], [1, 4, 7]).all
    (found,) = reported(torch, WRITES[name], [0, 2, 4], READS["kv[i]"], [1, 4, 7]).races
    assert found.first.write and not found.second.write
    assert found.first.frames[0].file == found.second.frames[0].file == __file__


def test_V45_a_report_on_memory_that_is_gone_by_then_is_whole(torch: Any) -> None:
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    mine = torch.tensor([0, 2], device="cuda")
    torch.cuda.synchronize()
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        kv = torch.zeros(8, 6, device="cuda")
        torch.cuda.synchronize()
        with torch.cuda.stream(first):
            kv[mine] = 2
        with torch.cuda.stream(second):
            kv[mine].sum()
        kv.record_stream(first)
        kv.record_stream(second)
        del kv
        torch.cuda.synchronize()
    (found,) = report.races
    assert found.made_at is not None, str(report)


@pytest.mark.parametrize("name", READS)
def test_V45_rows_that_an_index_names_for_a_read(torch: Any, name: str) -> None:
    assert not reported(torch, WRITES["index_fill_"], [0, 2, 3], READS[name], [1, 4, 7]).all
    (found,) = reported(torch, WRITES["index_fill_"], [0, 2, 4], READS[name], [1, 4, 7]).races
    assert found.first.write and not found.second.write


def test_V45_the_verdict_on_real_threads_is_the_same_each_time(torch: Any) -> None:
    for _ in range(20):
        apart = reported(torch, WRITES["kv[i] = x"], [0, 2, 3], READS["kv[i]"], [1, 4, 7], threads=True)
        assert not apart.all, str(apart)
        together = reported(torch, WRITES["kv[i] = x"], [0, 2, 4], READS["kv[i]"], [1, 4, 7], threads=True)
        assert len(together.races) == 1, str(together)


def test_V45_the_check_ends_when_what_hands_in_has_run(torch: Any) -> None:
    first, second = torch.cuda.Stream(), torch.cuda.Stream()
    kv = torch.zeros(8, 6, device="cuda")
    mine, theirs = torch.tensor([0, 1], device="cuda"), torch.tensor([2, 3], device="cuda")
    torch.cuda.synchronize()
    for rows, races in ((theirs, 0), (mine, 1)):
        with schedule("fifo"), hs.sanitize(on="collect") as report:
            with torch.cuda.stream(first):
                kv[mine] = 2
            with torch.cuda.stream(second):
                kv[rows].sum()
        assert len(report.races) == races, str(report)
        torch.cuda.synchronize()


def test_V45_the_backward_pass_writes_rows(torch: Any) -> None:
    weight = torch.zeros(8, 6, device="cuda", requires_grad=True)
    weight.grad = torch.zeros(8, 6, device="cuda")
    index, other = torch.tensor([1, 2], device="cuda"), torch.tensor([4], device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        (grad,) = torch.autograd.grad(weight[index].sum() + weight.index_select(0, index).sum(), weight)
        with torch.cuda.stream(side):
            weight.detach()[other] = 1
        torch.cuda.synchronize()
    assert not report.all, str(report)
    assert grad[1].sum().item() == 12


def test_V45_nodes_of_a_graph_hand_in_in_each_replay(torch: Any, captured: Any) -> None:
    kv = torch.zeros(8, 6, device="cuda")
    mine, theirs = torch.tensor([0, 1], device="cuda"), torch.tensor([2, 3], device="cuda")
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    with schedule("fifo"), hs.sanitize(on="collect") as report:
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kv[mine] = 2
        torch.cuda.synchronize()
        graph.replay()
        with torch.cuda.stream(side):
            kv[theirs].sum()
        torch.cuda.synchronize()
        assert not report.all, str(report)
        theirs.copy_(mine)
        torch.cuda.synchronize()
        graph.replay()
        with torch.cuda.stream(side):
            kv[theirs].sum()
        torch.cuda.synchronize()
    assert len(report.races) == 1, str(report)
