"""torch.distributed with CUDA tensors: two processes, each collective an operation on the group's stream."""

from __future__ import annotations

from pathlib import Path

import pytest
import ranks

COLLECTIVES = """
start(BACKEND)
with hs.sanitize(on="raise"):
    x = full(float(rank + 1))
    assert dist.all_reduce(x, async_op=True).wait() and x.tolist() == [3] * 4
    for op, right in (("MAX", 2), ("PRODUCT", 2), ("AVG", 1.5)):
        x = full(float(rank + 1), dtype=torch.bfloat16)
        dist.all_reduce(x, op=getattr(dist.ReduceOp, op))
        assert x.tolist() == [right] * 4, op
    flags = torch.tensor([True, rank == 0, False], device=device)
    dist.all_reduce(flags)
    assert flags.tolist() == [True, True, False]
    number = torch.tensor([1 + 2j], device=device)
    dist.all_reduce(number)
    assert number.item() == 2 + 4j
    x = full(float(rank))
    dist.broadcast(x, 1)
    assert x.tolist() == [1] * 4
    parts = [full(-1.0, 2) for _ in range(world)]
    dist.all_gather(parts, full(float(rank), 2))
    assert [part.tolist() for part in parts] == [[0, 0], [1, 1]]
    uneven = [full(-1.0, n + 1) for n in range(world)]
    dist.all_gather(uneven, full(float(rank), rank + 1))
    assert [part.tolist() for part in uneven] == [[0], [1, 1]]
    out = full(-1.0, 4, dtype=torch.float16)
    dist.all_gather_into_tensor(out, full(float(rank), 2, dtype=torch.float16))
    assert out.tolist() == [0, 0, 1, 1]
    out = full(-1.0, 2)
    dist.reduce_scatter_tensor(out, torch.arange(4.0, device=device))
    assert out.tolist() == [4.0 * rank, 4.0 * rank + 2]
    dist.reduce_scatter(out, [full(float(i + rank), 2) for i in range(world)], op=dist.ReduceOp.AVG)
    assert out.tolist() == [rank + 0.5] * 2
    out = full(-1.0, 4)
    dist.all_to_all_single(out, torch.arange(4.0, device=device) + 10 * rank)
    assert out.tolist() == [2 * rank, 2 * rank + 1, 10 + 2 * rank, 11 + 2 * rank]
    out = full(-1.0, 2 * rank + 2)
    dist.all_to_all_single(out, torch.arange(3.0, device=device) + 10 * rank, [rank + 1, rank + 1], [1, 2])
    assert out.tolist() == ([0, 10] if rank == 0 else [1, 2, 11, 12])
    outs = [full(-1.0, rank + 1) for _ in range(world)]
    dist.all_to_all(outs, [full(float(rank), n + 1) for n in range(world)])
    assert [one.tolist() for one in outs] == [[0] * (rank + 1), [1] * (rank + 1)]
    gathered = [full(-1.0, 2) for _ in range(world)] if rank == 0 else None
    dist.gather(full(float(rank), 2), gathered, 0)
    assert rank or [part.tolist() for part in gathered] == [[0, 0], [1, 1]]
    dist.scatter(out := full(-1.0), [full(5.0), full(6.0)] if rank == 0 else None, 0)
    assert out.tolist() == [5 + rank] * 4
    x = full(float(rank + 1))
    dist.reduce(x, 0)
    assert x.tolist() == [3 if rank == 0 else 2] * 4  # the other one's stays
    if rank == 0:
        dist.send(full(7.0), 1)
    else:
        dist.recv(x, 0)
        assert x.tolist() == [7] * 4
    mine, other = full(float(rank)), full(-1.0)
    for work in dist.batch_isend_irecv(
        [dist.P2POp(dist.isend, mine, 1 - rank), dist.P2POp(dist.irecv, other, 1 - rank)]
    ):
        work.wait()
    assert other.tolist() == [1 - rank] * 4
    works = [dist.isend(mine, 1 - rank), dist.irecv(other, 1 - rank)]  # not in a batch: no deadlock either
    for work in works:
        work.wait()
    with dist._coalescing_manager(async_ops=True) as together:
        several = [full(float(rank + n)) for n in range(3)]
        for x in several:
            dist.all_reduce(x)
    together.wait()
    assert [x[0].item() for x in several] == [1, 3, 5]
    dist.barrier()
    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
    with dist.group.WORLD._get_backend(device) and torch.cuda.stream(torch.cuda.Stream()):
        y = full(1.0)
        future = dist.all_reduce(y, async_op=True).get_future().then(lambda f: f.value()[0] * 2)
        assert future.wait().tolist() == [4] * 4
    x = full(1.0)
    dist.all_reduce(x, group=dist.new_group([0, 1]))
    assert x.tolist() == [2] * 4
    here = torch.ones(3)
    if BACKEND != "nccl":
        dist.all_reduce(here)
        assert here.tolist() == [2] * 3
dist.destroy_process_group()
"""

BATCHES = """
os.environ["TORCH_DISTRIBUTED_DEBUG"] = "DETAIL"
dist.set_debug_level_from_env()
start("nccl", device_id=device)
with hs.sanitize(on="raise"):
    there, here, other = full(-1.0), full(-1.0), full(-2.0)
    batch = [(dist.irecv, other, 1 - rank), (dist.irecv, here, rank), (dist.isend, full(5.0 + rank), rank),
             (dist.isend, full(7.0 + rank), 1 - rank)]
    for work in dist.batch_isend_irecv([dist.P2POp(*one) for one in batch]):
        work.wait()
    assert here.tolist() == [5 + rank] * 4 and other.tolist() == [8 - rank] * 4
    objects = [None] * world
    dist.all_gather_object(objects, {"rank": rank})
    assert objects == [{"rank": 0}, {"rank": 1}]
dist.set_debug_level(dist.DebugLevel.OFF)
# With a device for the group, meshes split it.
from torch.distributed.device_mesh import init_device_mesh
mesh = init_device_mesh("cuda", (2, 1), mesh_dim_names=("replicate", "shard"))
x, y = full(1.0 + rank), full(1.0 + rank)
dist.all_reduce(x, group=mesh.get_group("replicate"))
dist.all_reduce(y, group=mesh.get_group("shard"))
assert x.tolist() == [3] * 4 and y.tolist() == [1 + rank] * 4
alone = dist.new_group([1])
if rank == 1:
    dist.all_reduce(y, group=alone)
    assert y.tolist() == [2] * 4
with torch.profiler.profile(record_shapes=True) as profile:
    dist.all_reduce(x)
    dist.recv(x, 1) if rank == 0 else dist.send(x, 0)
found = [(event.name, event.input_shapes) for event in profile.events() if event.name.startswith("nccl:")]
assert found == [("nccl:all_reduce", [[4]]), ("nccl:recv" if rank == 0 else "nccl:send", [[4]])], found
dist.destroy_process_group()
"""

DDP = """
start("nccl")
def model():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
generator = torch.Generator().manual_seed(1)
batches = [torch.randn(6, 4, generator=generator) for _ in range(4)]
def train(network, share):
    optimizer = torch.optim.SGD(network.parameters(), lr=0.1)
    for batch in batches:
        optimizer.zero_grad()
        network(share(batch)).square().mean().backward()
        optimizer.step()
    return [p.detach().cpu() for p in network.parameters()]
with hs.sanitize(on="raise"):
    parallel = torch.nn.parallel.DistributedDataParallel(model().cuda(), device_ids=[rank], bucket_cap_mb=0.0001)
    found = train(parallel, lambda batch: batch[rank * 3:rank * 3 + 3])
    for there, here in zip(found, train(model(), lambda batch: batch), strict=True):
        assert torch.allclose(there, here, rtol=1e-5, atol=1e-6), (there - here).abs().max()
dist.destroy_process_group()
"""

MISSING = """
start("nccl")
def step(wait):
    x = full(float(rank + 1))
    work = dist.all_reduce(x, async_op=True)
    if wait:
        work.wait()
    return x * 2
with hs.sanitize(on="collect") as report:
    right = step(True).tolist()
    assert not report.races and right == [6] * 4
    step(False)
    torch.cuda.synchronize()
(finding,) = report.races
assert "nccl:all_reduce writes on stream" in str(finding) and "aten::mul reads on the default stream" in str(finding)
assert finding.fix == "work.wait()", str(report)
torch.cuda.synchronize()
with hs.testing.schedule("latest"):
    assert step(True).tolist() == [6] * 4
    assert step(False).tolist() == [2 * (rank + 1)] * 4
torch.cuda.synchronize()
dist.destroy_process_group()
"""

LATE = """
start("nccl", seconds=1)
x = full(1.0)
dist.all_reduce(x)
torch.cuda.synchronize()
store = dist.distributed_c10d._get_default_store()
if rank == 0:
    y = full(1.0)
    work = dist.irecv(y, 1) if WHAT == "recv" else dist.all_reduce(y, async_op=True)  # the other rank never takes part
    assert not work.is_completed()
    try:
        work.wait() if ASK == "stream" else work.wait(timeout=datetime.timedelta(seconds=30))
        torch.cuda.synchronize()
    except dist.DistBackendError as error:
        print(error)
        assert work.is_completed() and not work.is_success()
    store.set("over", "")
else:
    store.wait(["over"], datetime.timedelta(seconds=60))
"""

ORDER = """
start("nccl")
other = dist.new_group([0, 1])
x, y, z = (full(float(rank + n)) for n in range(3))
torch.cuda.synchronize()
side, store = torch.cuda.Stream(), dist.distributed_c10d._get_default_store()
gate = hs.testing.Gate(own(side))
with torch.cuda.stream(side):
    first = dist.all_reduce(x, async_op=True)  # behind the stream that is held
second = dist.all_reduce(y, async_op=True)  # behind the group's collective before it
dist.all_reduce(z, group=other)  # on a stream of its own
assert z.tolist() == [5] * 4
assert not first.is_completed() and not second.is_completed()
for held in (first, dist.barrier(async_op=True)):
    try:
        held.wait(timeout=datetime.timedelta(milliseconds=50))
        raise SystemExit("a wait of the host for held work returned")
    except dist.DistBackendError as error:
        assert "timed out in blocking wait after 50 milliseconds" in str(error), error
assert first.wait()  # the host goes on
doubled = x * 2
assert not torch.cuda.current_stream().query()
gate.open()
assert doubled.tolist() == [2] * 4 and second.wait() and y.tolist() == [3] * 4
torch.cuda.synchronize()
if rank == 0:
    store.set("asked", "")
    dist.barrier()
    assert store.check(["opened"]), "the host did not wait for the barrier"
else:
    with hs.testing.Gate(own(torch.cuda.current_stream())):
        work = dist.barrier(async_op=True)
        store.wait(["asked"], datetime.timedelta(seconds=60))
        store.set("opened", "")
    work.wait()
dist.destroy_process_group()
"""

SPLIT = """
start("nccl", device_id=device)
nccl = dist.ProcessGroupNCCL
parent = dist.group.WORLD._get_backend(device)
assert type(parent) is nccl and parent.comm_split_count() == 0
options = nccl.Options(is_high_priority_stream=True)
limit = datetime.timedelta(seconds=7)
part = dist.split_group(split_ranks=[[0, 1]], pg_options=options, timeout=limit)
backend = part._get_backend(device)
assert type(backend) is nccl and parent.comm_split_count() == 1
assert backend.options.is_high_priority_stream and backend.options._timeout == limit
plain = dist.split_group(split_ranks=[[0, 1]])
backend = plain._get_backend(device)
assert type(backend) is nccl and plain.group_desc == "default_pg:split:1", plain.group_desc
assert not backend.options.is_high_priority_stream and backend.options._timeout != limit
again = dist.split_group(part, split_ranks=[[0, 1]])._get_backend(device)
assert again.options.is_high_priority_stream  # the parent's, where no options are given
x, y = full(float(rank)), full(1.0)
torch.cuda.synchronize()
side = torch.cuda.Stream()
with hs.testing.Gate(own(side)):
    with torch.cuda.stream(side):
        work = dist.all_reduce(x, group=part, async_op=True)
    dist.all_reduce(y)
    assert y.tolist() == [2] * 4 and not work.is_completed()
work.wait()
assert x.tolist() == [1] * 4
dist.destroy_process_group()
"""

PROFILE = """
import json
start("nccl", device_id=device)
alone = dist.new_group([1])
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True) as profile:
    dist.all_reduce(full(1.0))
    dist.all_reduce(torch.ones(3, dtype=torch.int32, device=device), async_op=True).wait()
    if rank == 1:
        dist.all_gather_into_tensor(full(0.0, 2), full(1.0, 2), group=alone)
    dist.send(full(1.0), 1) if rank == 0 else dist.recv(full(1.0), 0)
profile.export_chrome_trace("trace%d.json" % rank)
with open("trace%d.json" % rank) as trace:
    events = [e["args"] for e in json.load(trace)["traceEvents"] if e.get("name") == "record_param_comms"]
shown = [(e["Collective name"], e["dtype"], e["In msg nelems"], e["Out msg nelems"], e["Group size"]) for e in events]
own = [("_allgather_base", "Float", 2, 2, 1)] if rank == 1 else []
assert shown == [("allreduce", "Float", 4, 4, 2), ("allreduce", "Int", 3, 3, 2), ("wait", "Byte", 0, 0, 1), *own,
                 ("send" if rank == 0 else "recv", "Float", 4, 4, 2), ("wait", "Byte", 0, 0, 1)], shown
assert events[0]["Process Group Name"] == "0" and events[0]["Process Group Description"] == "default_pg"
assert [e["Process Group Ranks"] for e in events if e["Collective name"] == "_allgather_base"] == ["[1]"] * len(own)
assert events[-2]["Dst Rank" if rank == 0 else "Src Rank"] == 1 - rank
dist.destroy_process_group()
"""


@pytest.mark.parametrize("backend", ["nccl", "gloo", "cpu:gloo,cuda:nccl"])
def test_collectives_are_right_and_ordered(tmp_path: Path, backend: str) -> None:
    ranks.run(tmp_path, f"BACKEND = {backend!r}\n" + COLLECTIVES)


def test_F27_a_collective_is_ordered_by_streams_and_its_wait_too(tmp_path: Path) -> None:
    ranks.run(tmp_path, ORDER)


def test_F28_a_split_group_is_of_the_class_and_has_its_options(tmp_path: Path) -> None:
    ranks.run(tmp_path, SPLIT)


def test_F29_a_profile_has_collectives_and_waits_for_them(tmp_path: Path) -> None:
    ranks.run(tmp_path, PROFILE)


def test_a_group_serves_itself_meshes_and_profilers(tmp_path: Path) -> None:
    ranks.run(tmp_path, BATCHES)


def test_ddp_trains_as_one_process_does(tmp_path: Path) -> None:
    ranks.run(tmp_path, DDP)


def test_a_missing_wait_for_a_work_is_found(tmp_path: Path) -> None:
    ranks.run(tmp_path, MISSING)


@pytest.mark.parametrize("ask", ["stream", "host"])
@pytest.mark.parametrize("what", ["all_reduce", "recv"])
def test_F37_a_time_limit_that_passes_is_reported_in_torchs_words(tmp_path: Path, what: str, ask: str) -> None:
    out, _ = ranks.run(tmp_path, f"WHAT, ASK = {what!r}, {ask!r}\n" + LATE)
    one = "SeqNum=2, OpType=ALLREDUCE, NumelIn=4" if what == "all_reduce" else "SeqNum=1, OpType=RECV, NumelIn=0"
    assert f"Watchdog caught collective operation timeout: WorkNCCL({one}, " in out, out
    assert "NumelOut=4, Timeout(ms)=1000) ran for" in out and "program.py:" in out, out
